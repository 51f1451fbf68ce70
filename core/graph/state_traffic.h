#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/graph/body.h"
#include "core/plan/plan.h"
#include "core/recipe.h"

namespace core {

// Ranks of a stage that communicate: every rank with those that are a multiple of `stride` away from it, `size` of them.
struct GroupShape {
  std::int64_t stride = 1, size = 1;
  auto operator<=>(const GroupShape&) const = default;
};
// The group of a body operation. Scope::none has one rank.
GroupShape shape_of(Scope scope, const ParallelPlan& plan);

// A collective that keeps shared states together.
struct StateOp {
  OpKind kind = OpKind::all_reduce;
  std::string_view name;
  double bytes = 0.0;  // as OpKind counts them
  GroupShape group;
  std::int64_t levels = 0;  // all_gather, reduce_scatter: OpSpec::k
};

class StateOps {
 public:
  explicit StateOps(Collectives collectives = Collectives::flat) : levels_(static_cast<std::int64_t>(collectives)) {}
  void add(StateOp op);
  const StateOp* begin() const { return ops_.data(); }
  const StateOp* end() const { return ops_.data() + count_; }
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }

 private:
  std::int64_t levels_;
  std::array<StateOp, 6> ops_;
  std::size_t count_ = 0;
};

// How many ranks share out each state of a class: 1 where each has its own.
struct ShardSizes {
  std::int64_t parameters = 1, gradients = 1, optimizer = 1, replicas = 1;
};

// What sharding makes ranks exchange, for dense parameters and for experts (whose replicas are another group), in the order
// in which they run. With groups of p <= g <= o of D replicas (ZeRO, arXiv 1910.02054; groups smaller than all: PaRO, arXiv
// 2310.06003, table 1), n elements:
//   before a unit runs    p > 1: all-gather of its n over p
//   after each backward   g > 1: reduce-scatter of n over g
//   after the last        o > g: reduce-scatter of n / g over o / g; D > o: all-reduce of n / o over D / o
//   after the optimizer   o > p: all-gather of n / p over o / p
class StateTraffic {
 public:
  StateTraffic(const ParallelPlan& plan, const Recipe& recipe);

  StateOps unit_gather(const StateElements& n) const;
  StateOps updated_gather(const StateElements& n) const;
  StateOps reduce_each(const StateElements& n) const;
  StateOps reduce_last(const StateElements& n) const;  // besides reduce_each
  // Both copies of a stage that two pipeline ranks hold (DualPipe): reduce, and gather after the optimizer.
  StateOps reduce_copies(const StateElements& n, std::int64_t stride) const;
  StateOps gather_copies(const StateElements& n, std::int64_t stride) const;

  const ShardSizes& dense() const { return dense_; }
  const ShardSizes& experts() const { return experts_; }
  // Elements of optimizer states on a rank.
  double optimizer_elements(const StateElements& n) const {
    return n.dense / static_cast<double>(dense_.optimizer) + n.experts / static_cast<double>(experts_.optimizer);
  }
  double gradient_elements(const StateElements& n) const {
    return n.dense / static_cast<double>(dense_.gradients) + n.experts / static_cast<double>(experts_.gradients);
  }

  bool shared() const { return dense_.replicas > 1 || experts_.replicas > 1; }
  // Each unit is gathered before it runs.
  bool gathers_units() const { return dense_.parameters > 1 || experts_.parameters > 1; }
  // Parameters that the last step updated are gathered at the start of this one, beside the first forward.
  bool gathers_ahead() const { return !gathers_units() && shards_optimizer() && overlap_parameters_; }
  bool reduces_each() const { return dense_.gradients > 1 || experts_.gradients > 1; }
  bool shards_optimizer() const { return dense_.optimizer > 1 || experts_.optimizer > 1; }

 private:
  struct Class {
    const ShardSizes& sizes;
    std::int64_t stride;
    double elements;
    bool is_experts;
  };
  std::array<Class, 2> classes(const StateElements& n) const;

  ShardSizes dense_, experts_;
  std::int64_t stride_, expert_stride_;
  double gather_bytes_, reduce_bytes_;
  Collectives collectives_;
  bool overlap_parameters_;
};

}  // namespace core

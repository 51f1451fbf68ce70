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

// An operation that keeps shared or offloaded states together: a collective, or a copy between a rank and its host, whose
// group is the rank alone.
struct StateOp {
  OpKind kind = OpKind::all_reduce;
  std::string_view name;
  double bytes = 0.0;  // as OpKind counts them
  GroupShape group;
  std::int64_t levels = 0;  // all_gather, reduce_scatter: OpSpec::k
};
// The operation of a graph, or as it is priced; `group` is its group's index there, for collectives.
OpSpec spec_of(const StateOp& op, std::string_view format, std::int16_t group);

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
  std::array<StateOp, 8> ops_;
  std::size_t count_ = 0;
};

// How many ranks share out each state of a class: 1 where each has its own.
struct ShardSizes {
  std::int64_t parameters = 1, gradients = 1, optimizer = 1, replicas = 1;
  bool gradients_on_host = false;  // offloaded: accumulated there, not on the rank
};

// What sharding makes ranks exchange, for dense parameters and for experts (whose replicas are another group), in the order
// in which they run. With groups of p <= g <= o of D replicas (ZeRO, arXiv 1910.02054; groups smaller than all: PaRO, arXiv
// 2310.06003, table 1), n elements:
//   before a unit runs    p > 1: all-gather of its n over p
//   after each backward   g > 1: reduce-scatter of n over g
//   after the last        o > g: reduce-scatter of n / g over o / g; D > o: all-reduce of n / o over D / o
//   before the optimizer  o > 1: all-gather of the matrices that parts cut, where the recipe gathers them (matrix_gather)
//   after the optimizer   o > p: all-gather of n / p over o / p
// Offloaded states travel between a rank and its host, in the same queue (ZeRO-Offload, arXiv 2101.06840, section 4;
// ZeRO-Infinity, arXiv 2104.07857, section 5.1). With weights on the host, before a unit's all-gather: n / p weights to the
// rank. With the optimizer there:
//   gradients, g = D, ZeRO 2 and 3   after each backward: n / g to the host as they were reduced, which sums them up
//   else (kept on the rank)          after the last: n / o to the host as they were accumulated
//   after the optimizer              n / o updated weights to the rank, where the weights are there or gathered further
// With weights on the host that were updated or gathered on the rank: n / p back to the host.
class StateTraffic {
 public:
  StateTraffic(const ParallelPlan& plan, const Recipe& recipe);

  StateOps unit_gather(const StateElements& n) const;
  StateOps updated_gather(const StateElements& n) const;
  // All that follows the optimizer in its step: updated_gather, unless it is done ahead of the next step's work, and copies.
  StateOps after_optimizer(const StateElements& n) const;
  // Muon on whole matrices (arXiv 2502.16982, section 2.3, algorithm 1): each rank gathers the matrices of which it has a part,
  // that is at most all of them (the paper's bound), and what the cuts between parts of n elements leave elsewhere. Of o
  // parts, o - 1 cuts fall evenly among the n elements, e (o - 1) / n into a matrix of e elements, so that a rank lacks
  // (o - 1) / o sum(e^2) / n elements: an all-gather of sum(e^2) / n over o. `squares` has sum(e^2).
  StateOps matrix_gather(const StateElements& n, const StateElements& squares) const;
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
  // Elements of gradients that are kept on a rank.
  double gradient_elements(const StateElements& n) const {
    return (dense_.gradients_on_host ? 0.0 : n.dense / static_cast<double>(dense_.gradients)) +
           (experts_.gradients_on_host ? 0.0 : n.experts / static_cast<double>(experts_.gradients));
  }

  bool shared() const { return dense_.replicas > 1 || experts_.replicas > 1; }
  // Gradients are reduced, or taken to the host.
  bool reduces() const { return shared() || offload_.optimizer; }
  // Each unit is gathered, or copied to the device, before it runs.
  bool gathers_units() const { return dense_.parameters > 1 || experts_.parameters > 1 || offload_.weights; }
  // Parameters that the last step updated are gathered at the start of this one, beside the first forward.
  bool gathers_ahead() const { return !gathers_units() && shards_optimizer() && overlap_parameters_; }
  bool reduces_each() const {
    return dense_.gradients > 1 || experts_.gradients > 1 || dense_.gradients_on_host || experts_.gradients_on_host;
  }
  bool shards_optimizer() const { return dense_.optimizer > 1 || experts_.optimizer > 1; }

 private:
  struct Class {
    const ShardSizes& sizes;
    std::int64_t stride;
    double elements;
    bool is_experts;
  };
  std::array<Class, 2> classes(const StateElements& n) const;
  StateOp updated_gather_of(const Class& c) const;

  ShardSizes dense_, experts_;
  std::int64_t stride_, expert_stride_;
  double gather_bytes_, reduce_bytes_, weight_bytes_, gradient_bytes_, matrix_bytes_;
  Offload offload_;
  Collectives collectives_;
  bool overlap_parameters_;
};

}  // namespace core

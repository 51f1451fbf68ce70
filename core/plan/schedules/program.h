#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/schedule.h"

// What files of schedules write tables with.
namespace core::schedules {

// A table of the given sizes with empty programs, each with room for as many cells.
inline ScheduleTable blank_table(
    std::int64_t pp, std::int64_t vpp, std::int64_t m, Placement placement, std::int64_t cells_a_rank) {
  ScheduleTable t{pp, vpp, m, std::vector<std::vector<Action>>(static_cast<std::size_t>(pp)), placement};
  for (auto& rank : t.ranks) rank.reserve(static_cast<std::size_t>(cells_a_rank));
  return t;
}

// One stage of a rank's program: each kind of cell takes its micro-batches in order, from a first one on.
class StageCells {
 public:
  StageCells(std::vector<Action>& program, std::int64_t stage, std::int64_t first_micro_batch = 0)
      : program_(program), stage_(static_cast<std::uint16_t>(stage)), first_(static_cast<std::uint32_t>(first_micro_batch)) {}

  void forward() { program_.push_back({stage_, Action::Kind::forward, first_ + forwards_++}); }
  // Whole, or its input gradient; the weight gradients then follow by weight_gradient(), oldest first.
  void backward() { program_.push_back({stage_, Action::Kind::backward, first_ + backwards_++}); }
  void input_gradient() { program_.push_back({stage_, Action::Kind::input_gradient, first_ + backwards_++}); }
  void weight_gradient() { program_.push_back({stage_, Action::Kind::weight_gradient, first_ + weights_++}); }
  // The next forward overlapped with the next whole backward of `other`, which may be this stage.
  void forward_with_backward_of(StageCells& other) {
    program_.push_back({stage_, Action::Kind::forward, first_ + forwards_++, true});
    other.backward();
  }

  std::int64_t forwards() const { return forwards_; }
  std::int64_t backwards() const { return backwards_; }
  std::int64_t weights() const { return weights_; }

 private:
  std::vector<Action>& program_;
  std::uint16_t stage_;
  std::uint32_t first_, forwards_ = 0, backwards_ = 0, weights_ = 0;
};

}  // namespace core::schedules

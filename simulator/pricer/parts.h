#pragma once

#include <algorithm>

#include "core/error.h"
#include "simulator/pricer.h"

namespace simulator {

inline constexpr core::Part all_parts[] = {core::Part::forward, core::Part::backward, core::Part::input_gradient,
                                           core::Part::weight_gradient};
constexpr std::size_t index_of(core::Part part) { return static_cast<std::size_t>(part); }
constexpr std::size_t index_of(core::Recompute mode) { return static_cast<std::size_t>(mode); }

inline const core::Schedule& schedule_of(const core::ParallelPlan& plan) {
  const auto* schedule = core::find_schedule(plan.schedule);
  CORE_ASSERT(schedule != nullptr);
  return *schedule;
}

// Adds `count` bodies to what a rank holds.
inline void add(core::RankParameters& sum, const BodyPrice& body, std::int64_t count) {
  const auto n = static_cast<double>(count);
  sum.all += {n * body.elements.dense, n * body.elements.experts};
  sum.gemm += {n * body.gemm.dense, n * body.gemm.experts};
  sum.newton_schulz += n * body.newton_schulz;
  sum.largest_body = std::max(sum.largest_body, body.elements.all());
}

}  // namespace simulator

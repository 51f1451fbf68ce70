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

// The least time of kernels and all-to-alls, each given alone, that run beside each other at these rates as long as that helps:
// the shorter of them overlapped from start to end. No order is faster, and bounds of parts add up to no less than that of
// their sum.
inline core::SimTime least_beside(core::SimTime kernels, core::SimTime experts, const OverlapRates& rates) {
  constexpr auto full = OverlapRates::full_rate;
  if (rates.compute + rates.communication <= full) return kernels + experts;
  return kernels * rates.communication >= experts * rates.compute
             ? kernels + experts * (full - rates.compute) / rates.communication
             : experts + kernels * (full - rates.communication) / rates.compute;
}

// Adds `count` bodies to what a rank holds.
inline void add(core::RankParameters& sum, const BodyPrice& body, std::int64_t count) {
  const auto n = static_cast<double>(count);
  sum.all += {n * body.elements.dense, n * body.elements.experts};
  sum.gemm += {n * body.gemm.dense, n * body.gemm.experts};
  sum.newton_schulz += n * body.newton_schulz;
  sum.matrix_squares += {n * body.matrix_squares.dense, n * body.matrix_squares.experts};
  sum.newton_schulz_elements += {n * body.newton_schulz_elements.dense, n * body.newton_schulz_elements.experts};
  sum.largest_body = std::max(sum.largest_body, body.elements.all());
  sum.layer_weights = std::max(sum.layer_weights, body.layer_weights);
  sum.output_weight = std::max(sum.output_weight, body.output_weight);
  sum.gather_buffer = std::max(sum.gather_buffer, body.gather_buffer);
  sum.output_operands = std::max(sum.output_operands, body.output_operands);
}

}  // namespace simulator

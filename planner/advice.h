#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/search.h"
#include "simulator/step.h"

namespace planner {

// One setting changed, and what the plan then does.
struct Change {
  std::string what;  // "recompute=full:3"
  simulator::StepReport report;
};

// The single change that makes a plan fit and costs the least time: recompute (selective, full on the least number of
// layers), a higher ZeRO stage, sequence parallel, offload of the optimizer or of activations, a smaller micro-batch, a
// leaner loss, more expert parallelism, or data-parallel ranks given to tensor, context or pipeline parallelism. Nothing
// where none of them does.
std::optional<Change> smallest_change(const simulator::Setting& setting,
                                      const simulator::Bench& bench,
                                      const core::ParallelPlan& plan);

// Up to three plans that fit and are faster (any that fit, where the plan itself does not).
std::vector<Ranked> better_plans(const simulator::Setting& setting,
                                 const simulator::Bench& bench,
                                 const simulator::StepReport& report);

}  // namespace planner

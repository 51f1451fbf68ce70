#pragma once

#include "core/measured/measured_run.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/recipe.h"
#include "simulator/check/notes.h"

namespace simulator {

// The plan of a measured run: degrees, sharding, schedule, layout, recompute, overlap and kernels
// as its columns say them. Throws InputError where a column that has no default is empty, or says
// what no plan can.
core::ParallelPlan plan_of(const core::MeasuredRun& run,
                           const core::ModelSpec& model,
                           const core::Recipe& recipe,
                           Notes& notes);

// Layers of each virtual stage of a layout in Megatron-Core's words: E embedding, t a layer, m a
// module of multi-token prediction, L the loss, | between stages, *N for the last of them or a
// group in parentheses N times. "Et*3|(tt|)*6mL" is 3, 2, 2, 2, 2, 2, 2, 0. Throws InputError for
// anything else.
std::vector<std::int64_t> layers_of_layout(std::string_view layout);

}  // namespace simulator

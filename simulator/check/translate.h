#pragma once

#include "core/measured/measured_run.h"
#include "simulator/check/notes.h"
#include "simulator/pricer.h"

namespace simulator {

// A measured run in our terms: what was run on what, to be priced as often as one likes. Constants
// that a calibration changes are in `setting.framework`, `setting.sharded_framework` and the curves
// of a Bench; model, plan and shapes stay.
struct Translation {
  Setting setting;
  core::ParallelPlan plan;
  Notes notes;
};

// Throws InputError, one line, where the row cannot be said in our terms: a family, a GPU or a
// precision that we do not have, a column that is empty and has no default, or a plan that is not
// legal.
Translation translate(const core::MeasuredRun& run);

}  // namespace simulator

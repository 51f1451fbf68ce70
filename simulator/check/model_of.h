#pragma once

#include "core/measured/measured_run.h"
#include "core/model/model.h"
#include "simulator/check/notes.h"

namespace simulator {

// The model of a measured run, built from the sizes that the row states and from what its family
// adds: positions, biases, norms of queries and keys, sinks, windows. The vocabulary is the padded
// one where it is stated. Throws InputError where the family is unknown or a size that it needs is
// missing.
core::ModelSpec model_of(const core::MeasuredRun& run, Notes& notes);

}  // namespace simulator

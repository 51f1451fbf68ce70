#pragma once

#include "core/hardware/hardware.h"
#include "core/measured/measured_run.h"
#include "simulator/check/notes.h"

namespace simulator {

// The machine of a measured run: the GPU by the source's name for it, in its usual node with what
// the row states of it (GPUs, NVLink domain, network). Throws InputError for a GPU that has no file
// in data/gpus.
core::Cluster cluster_of(const core::MeasuredRun& run, Notes& notes);

}  // namespace simulator

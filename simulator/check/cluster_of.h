#pragma once

#include "core/hardware/hardware.h"
#include "core/measured/measured_run.h"
#include "simulator/check/notes.h"
#include "simulator/check/sources.h"

namespace simulator {

// The machine of a measured run: the GPU by the source's name for it, in its usual node with what
// the row states of it (GPUs, NVLink domain, network), or the GPU and the node that its source
// says. Throws InputError for a GPU that has no file in data/gpus.
core::Cluster cluster_of(const core::MeasuredRun& run, const SourceFacts& facts, Notes& notes);

}  // namespace simulator

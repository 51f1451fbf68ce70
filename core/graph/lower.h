#pragma once

#include "core/graph/graph_writer.h"
#include "core/graph/memory.h"
#include "core/graph/step_graph.h"
#include "core/graph/step_work.h"
#include "core/plan/schedule.h"

namespace core {

// Grain of a lowering.
//   cell:  one operation a schedule cell, for ranking (more where something overlaps it: a bucket of the last
//          backward, a unit of a sharded layer)
//   mixed: operations where data-parallel communication may run beside them, cells elsewhere; the same times as op
//   op:    every kernel and collective
enum class Grain : std::uint8_t { cell, mixed, op };
std::string_view name_of(Grain grain);

// The optimizer over a rank's part of some parameters: optimizer_work of it, the clearing of the gradients that the rank has,
// and the recipe's casts of weights once a step. `copies`: pipeline ranks that share the part out once more (DualPipe).
OpSpec optimizer_spec(const OptimizerElements& whole, const ParallelPlan& plan, const Recipe& recipe, double copies = 1.0);

// Puts the work of a step into a graph, by the order of the table. Folded, one rank a pipeline stage stands for its
// tensor- and data-parallel peers; unfolded, every rank has its own operations and collectives join them.
StepGraph lower(const StepWork& work, const ScheduleTable& table, Grain grain, Fold fold = Fold::yes);

}  // namespace core

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

// The optimizer over what a rank has (`whole`, before data parallelism shares it out): optimizer_work of its part, the
// clearing of its gradients, and the recipe's casts of weights once a step.
OpSpec optimizer_spec(const RankParameters& whole, const ParallelPlan& plan, const Recipe& recipe);
// The operations of a rank's optimizer, one after another: optimizer_spec, or with offload=optimizer its update (and the
// clearing of gradients that are there) on the host, and on the device what is left: clearing gradients, casts of weights.
std::vector<OpSpec> optimizer_specs(const RankParameters& whole, const ParallelPlan& plan, const Recipe& recipe);

// Puts the work of a step into a graph, by the order of the table. Folded, one rank a pipeline stage stands for its
// tensor- and data-parallel peers; unfolded, every rank has its own operations and collectives join them.
StepGraph lower(const StepWork& work, const ScheduleTable& table, Grain grain, Fold fold = Fold::yes);

}  // namespace core

#include "simulator/check/predict.h"

#include <algorithm>

#include "core/error.h"

namespace simulator {

namespace {

// Cells of a step (forwards and backwards of all stages) from which their operations are not
// written out one by one.
constexpr std::int64_t many_cells = 200'000;

core::Grain grain_of(const core::ParallelPlan& plan) {
  return 2 * plan.micro_batches() * plan.stages() > many_cells ? core::Grain::cell
                                                               : core::Grain::mixed;
}

double counted(const StageMemory& stage, MemoryKind kind) {
  const auto term = [&](core::MemoryTerm t) { return stage.terms_GiB[core::index_of(t)]; };
  double sum = stage.peak_GiB;
  if (kind == MemoryKind::process) return sum;
  sum -= term(core::MemoryTerm::context) + term(core::MemoryTerm::communicators);
  return kind == MemoryKind::reserved ? sum : sum - term(core::MemoryTerm::fragmentation);
}

}  // namespace

double Prediction::memory_GiB(MemoryKind kind, MemoryRank rank) const {
  CORE_ASSERT(!stages.empty());
  const double first = counted(stages.front(), kind), last = counted(stages.back(), kind);
  if (rank == MemoryRank::last) return last;
  if (rank == MemoryRank::first_or_last) return std::max(first, last);
  double most = 0.0;
  for (const auto& stage : stages) most = std::max(most, counted(stage, kind));
  return most;
}

Prediction predict(const Translation& run, const Bench& bench) {
  const auto grain = grain_of(run.plan);
  const auto step =
      simulate_step(run.setting, bench, run.plan, grain, core::Fold::yes, Detail::answer);
  Prediction p;
  p.step_time_s = step.report.step_time_s;
  p.low_s = step.report.low_s;
  p.high_s = step.report.high_s;
  p.fits = step.report.fits;
  p.stages = step.report.stages;
  p.peak_memory_GiB = step.report.peak_memory_GiB;
  p.memory_limit_GiB = step.report.memory_limit_GiB;
  p.grain = grain;
  return p;
}

RepeatedStep repeated(const Translation& run) {
  return {run.setting, run.plan, grain_of(run.plan), core::Fold::yes};
}

}  // namespace simulator

// Fits of Chinchilla's form to its 240 points, all threads: the whole grid of starts, resamples from the minimum, resamples from 100
// starts each; and one start of a law that goes by Ceres.
#include <benchmark/benchmark.h>

#include "core/io/data_dir.h"
#include "fitting/solver/bootstrap.h"
#include "fitting/runs/runs.h"
#include "fitting/solver/solver.h"

namespace {

fitting::Runs points() {
  fitting::RunOptions options;
  options.drop_highest = 5;
  return fitting::read_runs(fitting::law_of("chinchilla"), {core::data_dir() / "runs" / "chinchilla-epoch.csv"}, options);
}

const fitting::Solver& solver() {
  static const fitting::Solver made(fitting::law_of("chinchilla"), points().rows, 1e-3);
  return made;
}

void all_starts(benchmark::State& state) {
  const auto starts = fitting::starts_of(solver().law(), 4500);
  for (auto _ : state) benchmark::DoNotOptimize(solver().from_starts(starts));
}
BENCHMARK(all_starts)->Unit(benchmark::kMillisecond)->UseRealTime();

void resamples(benchmark::State& state) {
  const auto best = solver().from_starts(fitting::starts_of(solver().law(), 100)).front().minimum;
  fitting::BootstrapOptions options;
  options.draws = 4000;
  if (state.range(0) > 0) {
    options.draws = 100;  // a tenth of what the name says elsewhere
    options.starts = fitting::starts_of(solver().law(), state.range(0));
  }
  for (auto _ : state) benchmark::DoNotOptimize(fitting::bootstrap(solver(), best, options));
}
BENCHMARK(resamples)->Arg(0)->Arg(100)->Unit(benchmark::kMillisecond)->UseRealTime();

void ceres_start(benchmark::State& state) {
  fitting::Solver general(fitting::law_of("chinchilla"), points().rows, 1e-3);
  general.use_general();
  const auto starts = fitting::starts_of(general.law(), 1);
  for (auto _ : state) benchmark::DoNotOptimize(general.from_starts(starts));
}
BENCHMARK(ceres_start)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

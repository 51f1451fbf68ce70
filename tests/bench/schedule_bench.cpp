// Tables as the search writes them: cells a second for each schedule, 16 ranks and 256 micro-batches.
#include <benchmark/benchmark.h>

#include <string>

#include "core/plan/schedule.h"

namespace {

void write_table(benchmark::State& state, const core::Schedule& schedule) {
  std::int64_t cells = 0;
  for (auto _ : state) {
    const auto table = schedule.table(16, schedule.stages_a_rank.value_or(4), 256);
    for (const auto& rank : table.ranks) cells += static_cast<std::int64_t>(rank.size());
    benchmark::DoNotOptimize(table.ranks.data());
  }
  state.counters["cells_per_s"] = benchmark::Counter(static_cast<double>(cells), benchmark::Counter::kIsRate);
}

const bool registered = [] {
  for (const auto* schedule : core::schedules::all()) {
    const auto name = "WriteTable/" + std::string(schedule->name);
    benchmark::RegisterBenchmark(name.c_str(), [schedule](benchmark::State& state) { write_table(state, *schedule); });
  }
  return true;
}();

}  // namespace

// The question of `plan budget` that users ask: 40 sizes on 1,024 GPUs, all recipes that they have.
#include <benchmark/benchmark.h>

#include "planner/budget/report.h"

namespace {

void budget(benchmark::State& state, const char* gpu) {
  planner::BudgetAnswer answer;
  for (auto _ : state) {
    planner::BudgetRequest request;
    request.machine.gpu = gpu;
    request.gpus = {1024};
    request.budget = {planner::Budget::Kind::days, 30.0};
    const auto setup = planner::set_up(request);
    answer = planner::answer_budget(setup);
    benchmark::DoNotOptimize(answer);
  }
  state.counters["planned"] = static_cast<double>(answer.chosen.choices.size());
  state.counters["bounded"] = static_cast<double>(answer.chosen.bounded.size());
}

void H100On1024(benchmark::State& state) { budget(state, "h100-sxm"); }
void B200On1024(benchmark::State& state) { budget(state, "b200"); }
BENCHMARK(H100On1024)->Unit(benchmark::kSecond)->UseRealTime();
BENCHMARK(B200On1024)->Unit(benchmark::kSecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();

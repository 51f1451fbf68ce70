// The searches that users ask for, over all legal plans.
#include <benchmark/benchmark.h>

#include "planner/answer.h"

namespace {

void search(benchmark::State& state, const char* model, const char* gpu, std::int64_t gpus, std::int64_t batch,
            std::int64_t seq) {
  planner::SearchResult result;
  for (auto _ : state) {
    simulator::Request request;
    request.model = model, request.gpu = gpu, request.gpus = gpus, request.global_batch = batch, request.seq = seq;
    const auto setting = simulator::make_setting(request);
    const simulator::Bench bench(setting);
    const planner::Question question{&setting.model, gpus, batch, seq, setting.recipe.name, {}};
    result = planner::search(setting, bench, question, planner::axes_of(question));
    benchmark::DoNotOptimize(planner::refine(setting, bench, result.best, 10));
  }
  state.counters["legal"] = static_cast<double>(result.searched);
  state.counters["evaluated"] = static_cast<double>(result.evaluated);
  state.counters["pruned"] = static_cast<double>(result.pruned);
  state.counters["dominated"] = static_cast<double>(result.dominated);
  state.counters["out_of_memory"] = static_cast<double>(result.memory_rejected);
  state.counters["cells"] = static_cast<double>(result.cells);
  state.counters["plans_per_s"] = benchmark::Counter(
      static_cast<double>(result.searched) * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void Llama70BOn64(benchmark::State& state) { search(state, "llama-3.1-70b", "h100-sxm", 64, 512, 8192); }
void Llama405BOn16384(benchmark::State& state) { search(state, "llama-3.1-405b", "h100-sxm", 16384, 2048, 8192); }
void Gpt175BOn64(benchmark::State& state) { search(state, "gpt3-175b", "a100-sxm-80", 64, 1536, 2048); }
BENCHMARK(Llama70BOn64)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Llama405BOn16384)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Gpt175BOn64)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();

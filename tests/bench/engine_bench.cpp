// Operations a second of the event engine, schedule cells a second of the ranking, and what a folded 405B step takes.
#include <benchmark/benchmark.h>

#include "core/graph/lower.h"
#include "simulator/engine/cells.h"
#include "simulator/engine/engine.h"
#include "simulator/request.h"
#include "simulator/step.h"

namespace {

struct Case {
  simulator::Setting setting;
  simulator::Bench bench;
  core::ParallelPlan plan;
};

Case make_case(const char* model, std::int64_t gpus, const char* text, std::int64_t seq) {
  simulator::Request request;
  request.model = model;
  request.gpus = gpus;
  request.seq = seq;
  auto setting = simulator::make_setting(request);
  auto plan = core::complete_plan(core::parse_plan(text, "bench"), setting.model, gpus, 512);
  plan.recipe = setting.recipe.name;
  simulator::Bench bench(setting);
  return {std::move(setting), std::move(bench), plan};
}

struct Graph {
  core::StepGraph graph;
  std::vector<core::SimTime> durations;
  simulator::Slowdown slowdown;
};

Graph make_graph(const Case& c, core::Grain grain) {
  const auto& framework = c.setting.framework_of(c.plan);
  const auto work =
      core::step_work(c.setting.model, c.plan, c.setting.recipe, framework, c.setting.seq, c.setting.attention);
  const auto table = core::find_schedule(c.plan.schedule)->table(c.plan.pp, c.plan.vpp, c.plan.micro_batches());
  Graph g;
  g.graph = core::lower(work, table, grain);
  g.durations = simulator::durations_of(simulator::prices_of(g.graph, c.bench.machine(), framework));
  g.slowdown = simulator::slowdown_of(c.bench.curves());
  return g;
}

void run_ops(benchmark::State& state, bool slowed) {
  // The number of micro-batches scales the graph: time must be linear in operations.
  const auto c = make_case("llama-3.1-70b", 64,
                           ("tp=8 sp pp=4 dp=2 mb=1 gbs=" + std::to_string(2 * state.range(0))).c_str(), 4096);
  const auto g = make_graph(c, core::Grain::op);
  core::Timeline timeline;
  for (auto _ : state) {
    simulator::run_into(timeline, g.graph, g.durations, slowed ? g.slowdown : simulator::Slowdown{});
    benchmark::DoNotOptimize(timeline.makespan);
  }
  state.counters["operations"] = static_cast<double>(g.graph.size());
  state.counters["ops_per_s"] =
      benchmark::Counter(static_cast<double>(g.graph.size()) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}
void OpsAtFixedRates(benchmark::State& state) { run_ops(state, false); }
void OpsWithSlowdown(benchmark::State& state) { run_ops(state, true); }
BENCHMARK(OpsAtFixedRates)->Arg(8)->Arg(32)->Arg(128)->Unit(benchmark::kMillisecond);
BENCHMARK(OpsWithSlowdown)->Arg(8)->Arg(32)->Arg(128)->Unit(benchmark::kMillisecond);

// Fully sharded: every operation runs beside a gather or a reduction, so that rates change all the time.
void ShardedOpsWithSlowdown(benchmark::State& state) {
  const auto c = make_case("llama-3.1-8b", 64, "dp=64 zero=3 mb=1 gbs=1024", 4096);
  const auto g = make_graph(c, core::Grain::op);
  core::Timeline timeline;
  for (auto _ : state) {
    simulator::run_into(timeline, g.graph, g.durations, g.slowdown);
    benchmark::DoNotOptimize(timeline.makespan);
  }
  state.counters["ops_per_s"] =
      benchmark::Counter(static_cast<double>(g.graph.size()) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}
BENCHMARK(ShardedOpsWithSlowdown)->Unit(benchmark::kMillisecond);

void LowerOps(benchmark::State& state) {
  const auto c = make_case("llama-3.1-70b", 64, "tp=8 sp pp=4 dp=2 mb=1 gbs=64", 4096);
  std::size_t ops = 0;
  for (auto _ : state) ops += make_graph(c, core::Grain::op).graph.size();
  state.counters["ops_per_s"] = benchmark::Counter(static_cast<double>(ops), benchmark::Counter::kIsRate);
}
BENCHMARK(LowerOps)->Unit(benchmark::kMillisecond);

void Cells(benchmark::State& state) {
  const auto c = make_case("llama-3.1-70b", 64, "tp=4 sp pp=8x10 dp=2 mb=1 gbs=512", 4096);
  simulator::Pricer pricer(c.setting, c.bench);
  simulator::CellTimes times;
  pricer.cell_times(c.plan, times);
  const auto table = core::find_schedule(c.plan.schedule)->table(c.plan.pp, c.plan.vpp, c.plan.micro_batches());
  simulator::CellRunner runner;
  for (auto _ : state) benchmark::DoNotOptimize(runner.run(table, times));
  state.counters["cells_per_s"] =
      benchmark::Counter(static_cast<double>(runner.cells_run()), benchmark::Counter::kIsRate);
}
BENCHMARK(Cells)->Unit(benchmark::kMillisecond);

// Cells that the periodic shortcut stands for.
void CellsPeriodic(benchmark::State& state) {
  const auto c = make_case("llama-3.1-70b", 64, "tp=4 sp pp=8x10 dp=2 mb=1 gbs=512", 4096);
  simulator::Pricer pricer(c.setting, c.bench);
  simulator::CellTimes times;
  pricer.cell_times(c.plan, times);
  const auto* schedule = core::find_schedule(c.plan.schedule);
  const auto table = simulator::short_table(*schedule, c.plan.pp, c.plan.vpp, c.plan.micro_batches());
  simulator::CellRunner runner;
  bool periodic = true;
  for (auto _ : state) {
    const auto time = runner.run_periodic(table, schedule->round_micro_batches(c.plan.pp), c.plan.micro_batches(), times);
    periodic = periodic && time.has_value();
  }
  if (!periodic) state.SkipWithError("not periodic");
  state.counters["cells_stood_for_per_s"] = benchmark::Counter(
      static_cast<double>(2 * c.plan.stages() * c.plan.micro_batches()) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}
BENCHMARK(CellsPeriodic)->Unit(benchmark::kMillisecond);

void Folded405B(benchmark::State& state) {
  const auto c = make_case("llama-3.1-405b", 16384, "tp=8 sp pp=16 dp=128 mb=1 gbs=2048", 8192);
  std::size_t ops = 0;
  for (auto _ : state) {
    const auto step = simulator::simulate_step(c.setting, c.bench, c.plan, core::Grain::op, core::Fold::yes,
                                               simulator::Detail::answer);
    ops = step.graph.size();
  }
  state.counters["operations"] = static_cast<double>(ops);
}
BENCHMARK(Folded405B)->Unit(benchmark::kMillisecond);

// The network of 16,384 GPUs as a graph, and the first answer to what joins a group.
void TopologyOf16384(benchmark::State& state) {
  const auto cluster = core::make_cluster("h100-sxm", 16384);
  for (auto _ : state) {
    const core::Topology topology(cluster);
    benchmark::DoNotOptimize(topology.group(0, 8, 2048));
  }
}
BENCHMARK(TopologyOf16384)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();

#include "simulator/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/error.h"
#include "simulator/engine/engine.h"
#include "simulator/uncertainty.h"

namespace simulator {

namespace {

using core::MemoryTerm;

constexpr double borderline_share = 0.03;

void fill_memory(const SimulatedStep& step, const Setting& setting, StepReport& report) {
  const Ran ran{step.graph, step.timeline, step.prices};
  const auto& framework = step.work.framework;
  report.memory_limit_GiB = core::in_gibibytes(setting.cluster.gpu.memory_usable);
  const auto peaks = memory_peaks(ran);
  const auto ranks_per_stage = step.graph.ranks / static_cast<std::int32_t>(step.work.plan.pp);
  for (std::int64_t p = 0; p < step.work.plan.pp; ++p) {
    const auto& peak = peaks[static_cast<std::size_t>(p * ranks_per_stage)];
    StageMemory stage;
    stage.stage = p;
    for (const auto s : step.work.stages_of_rank(p)) {
      stage.layers += step.work.stages[static_cast<std::size_t>(s)].layers;
    }
    auto terms = peak.terms;
    terms[core::index_of(MemoryTerm::fragmentation)] = core::fragmentation(peak.short_lived, framework);
    for (const auto bytes : terms) {
      stage.terms_GiB.push_back(static_cast<double>(bytes) / core::gibibyte);
      stage.peak_GiB += stage.terms_GiB.back();
    }
    for (const auto term : {MemoryTerm::weights, MemoryTerm::gradients, MemoryTerm::optimizer}) {
      stage.states_GiB += stage.terms_GiB[core::index_of(term)];
    }
    if (p == 0 || stage.peak_GiB > report.peak_memory_GiB) {
      report.peak_memory_GiB = stage.peak_GiB;
      report.fullest_stage = p;
    }
    report.stages.push_back(std::move(stage));
  }
  report.fits = fits_in(report.peak_memory_GiB, report.memory_limit_GiB);
  if (report.host_short_GiB > 0.0) report.fits = Fits::no;
  report.short_GiB = std::max(0.0, report.peak_memory_GiB - report.memory_limit_GiB);
}

// Host memory: of each pipeline rank's states and activations, summed over the node that has most.
void fill_host_memory(const core::StepWork& work, const core::ScheduleTable& table, const Setting& setting, StepReport& report) {
  const auto& plan = work.plan;
  std::vector<double> kept;
  for (const auto& stage : work.stages) {
    double sum = 0.0;
    for (const auto body : stage.bodies) sum += work.bodies[body].offloaded.value;
    kept.push_back(sum);
  }
  auto of_rank = core::host_activations(table, kept);
  for (std::int64_t p = 0; p < plan.pp; ++p) {
    of_rank[static_cast<std::size_t>(p)] += core::host_memory(core::rank_parameters(work, p), plan, work.recipe);
  }
  const auto bytes = core::node_host_memory(of_rank, plan, setting.cluster.node.gpus, work.framework);
  report.host_memory_GiB = bytes / core::gibibyte;
  report.host_limit_GiB = core::in_gibibytes(setting.cluster.node.host_memory);
  report.host_short_GiB = std::max(0.0, report.host_memory_GiB - report.host_limit_GiB);
}

void fill_interval(const Setting& setting, const Bench& bench, const core::ParallelPlan& plan, StepReport& report) {
  const auto& known = uncertainty();
  const auto run = class_of(setting, plan, bench.curves(), known.software);
  auto band = band_of(known, run, setting.cluster.gpu.arch);
  if (setting.calibrated) band = narrowed(known, band, run, setting.cluster.gpu.name, setting.calibrated->runs);
  // What a step waits for besides its work is given, not predicted.
  const double given = setting.data_stall_s + setting.checkpoint_s, predicted = report.step_time_s - given;
  report.low_s = predicted * band.low + given;
  report.high_s = predicted * band.high + given;
  report.interval_because = band.because;
}

void fill_speed(const Setting& setting, const core::ParallelPlan& plan, StepReport& report) {
  const auto gpus = static_cast<double>(plan.gpus());
  const double tokens = static_cast<double>(plan.global_batch * setting.seq);
  report.tokens_per_s_per_gpu = tokens / report.step_time_s / gpus;
  report.tokens_per_day = tokens / report.step_time_s * 86400.0;
  const auto peak = setting.cluster.gpu.peak(setting.recipe.gemm_forward);
  CORE_ASSERT(peak.has_value());
  const auto flops = model_flops(setting, plan);
  report.tflops_per_gpu = flops.value / report.step_time_s / gpus / 1e12;
  report.bound_s = flops.value / gpus / peak->value;
  const double rate = 1e-12 * tokens / report.step_time_s / gpus;
  report.tflops_causal = 3.0 * rate * core::flops_per_token_forward(setting.model, setting.seq, true);
  report.tflops_6nd = 6.0 * rate * static_cast<double>(core::count_parameters(setting.model).active);
  report.mfu = report.bound_s / report.step_time_s;
  if (setting.cluster.usd_per_gpu_hour) {
    report.usd_per_step = setting.cluster.usd_per_gpu_hour->value * gpus * report.step_time_s / 3600.0;
  }
}

core::ScheduleTable table_of(const core::ParallelPlan& plan) {
  const auto* schedule = core::find_schedule(plan.schedule);
  CORE_ASSERT(schedule != nullptr);
  return schedule->table(plan.pp, plan.vpp, plan.micro_batches());
}

core::StepWork work_of(const Setting& setting, const core::ParallelPlan& plan) {
  return core::step_work(setting.model, setting.bodies_of(plan), plan, setting.recipe, setting.framework_of(plan), setting.seq);
}

double step_time_s(core::SimTime makespan, const Setting& setting, const core::Framework& framework) {
  return core::to_seconds(makespan).value + framework.step_overhead.value + setting.data_stall_s +
         setting.checkpoint_s;
}

// FLOPs of all matrix multiplications of a step, on all ranks.
double multiplied(const core::StepGraph& graph) {
  double sum = 0.0;
  for (core::OpId op = 0; op < graph.size(); ++op) {
    sum += graph.specs[graph.spec[op]].flops.value *
           static_cast<double>(graph.multiplicity[static_cast<std::size_t>(graph.rank_of(op))]);
  }
  return sum;
}

// One line for each kind of group: tensor, context, expert and data parallel, and parts of them ("dp.8"); of the pairs
// of pipeline neighbours the first stands for all.
void fill_groups(const core::StepGraph& graph, const Bench& bench, StepReport& report) {
  constexpr std::array<std::string_view, 6> kinds{"tp", "cp", "ep", "etp", "dp", "edp"};
  const auto add = [&](const core::CommGroup& group) {
    auto line = group.name + ": " + links_of(group, bench.topology()).says;
    if (std::find(report.groups.begin(), report.groups.end(), line) == report.groups.end()) {
      report.groups.push_back(std::move(line));
    }
  };
  for (const auto kind : kinds) {
    for (const auto& group : graph.groups) {
      if (group.size >= 2 && group.name.substr(0, group.name.find('.')) == kind) add(group);
    }
  }
  const auto pair = std::find_if(graph.groups.begin(), graph.groups.end(),
                                 [](const auto& group) { return group.name.starts_with("pp"); });
  if (pair != graph.groups.end()) add(*pair);
}

}  // namespace

std::string_view name_of(Fits fits) {
  switch (fits) {
    case Fits::yes: return "yes";
    case Fits::borderline: return "borderline";
    case Fits::no: return "no";
  }
  CORE_ASSERT(false);
}

Fits fits_in(double peak, double limit) {
  if (peak <= (1.0 - borderline_share) * limit) return Fits::yes;
  return peak <= (1.0 + borderline_share) * limit ? Fits::borderline : Fits::no;
}

core::Flops model_flops(const Setting& setting, const core::ParallelPlan& plan) {
  const double tokens = static_cast<double>(plan.global_batch * setting.seq);
  return core::Flops{3.0 * tokens * core::flops_per_token_forward(setting.model, setting.seq)};
}

std::string sharding_text(const core::ParallelPlan& plan) {
  const core::StateTraffic traffic(plan, core::Recipe{});
  const auto over = [&](std::int64_t core::ShardSizes::*state) {
    const auto dense = traffic.dense().*state, experts = traffic.experts().*state;
    const auto ranks = [](std::int64_t n) { return n > 1 ? fmt::format("over {}", n) : std::string("whole"); };
    return plan.ep > 1 ? fmt::format("{} (experts {})", ranks(dense), ranks(experts)) : ranks(dense);
  };
  return fmt::format("parameters {}, gradients {}, optimizer states {}", over(&core::ShardSizes::parameters),
                     over(&core::ShardSizes::gradients), over(&core::ShardSizes::optimizer));
}

RepeatedStep::RepeatedStep(const Setting& setting, const core::ParallelPlan& plan, core::Grain grain, core::Fold fold)
    : plan_(plan), graph_(core::lower(work_of(setting, plan), table_of(plan), grain, fold)) {}

core::Seconds RepeatedStep::time(const Setting& setting, const Bench& bench) {
  auto framework = setting.framework_of(plan_);
  framework.host_per_launch = framework.host(plan_.graphs);  // as core::step_work
  const auto prices = prices_of(graph_, bench.machine(), framework);
  Ran now{durations_of(prices), contention_of(graph_, bench.curves()), kernel_shares_of(prices)};
  const bool known = first_ && now.durations == first_->durations && now.contention == first_->contention &&
                     now.kernel_shares == first_->kernel_shares;
  now.makespan = known ? first_->makespan : run(graph_, now.durations, now.contention, now.kernel_shares).makespan;
  if (!first_) first_ = now;
  return core::Seconds{step_time_s(now.makespan, setting, framework)};
}

SimulatedStep simulate_step(const Setting& setting, const Bench& bench, const core::ParallelPlan& plan,
                            core::Grain grain, core::Fold fold, Detail detail, const core::ScheduleTable* given) {
  SimulatedStep step;
  const auto& framework = setting.framework_of(plan);
  const auto table = given != nullptr ? *given : table_of(plan);
  step.work = work_of(setting, plan);
  step.graph = core::lower(step.work, table, grain, fold);
  step.prices = prices_of(step.graph, bench.machine(), step.work.framework);
  step.timeline =
      run(step.graph, durations_of(step.prices), contention_of(step.graph, bench.curves()), kernel_shares_of(step.prices));

  auto& report = step.report;
  const Ran ran{step.graph, step.timeline, step.prices};
  report.plan = plan;
  report.grain = grain;
  report.simulated_operations = step.graph.size();
  report.step_time_s = step_time_s(step.timeline.makespan, setting, framework);
  fill_host_memory(step.work, table, setting, report);
  fill_memory(step, setting, report);
  fill_speed(setting, plan, report);
  fill_interval(setting, bench, plan, report);
  report.tflops_hardware = 1e-12 * multiplied(step.graph) / static_cast<double>(plan.gpus()) / report.step_time_s;
  const auto rank = last_rank(ran);
  report.breakdown = breakdown_of(ran, rank);
  report.breakdown[index_of(Activity::other)] += framework.step_overhead.value;
  report.breakdown[index_of(Activity::data_stall)] += setting.data_stall_s;
  report.breakdown[index_of(Activity::checkpoint)] += setting.checkpoint_s;
  report.operations = by_operation(ran, rank);
  report.shares = origin_shares(report.operations);
  if (detail == Detail::depth) report.critical = critical_path(ran);
  fill_groups(step.graph, bench, report);
  report.notes = core::notes_on(plan, setting.gpus_together());
  return step;
}

std::optional<std::string> why_not_offload(const Setting& setting, const Bench& bench, const core::ParallelPlan& plan) {
  if (!plan.offload.any()) return std::nullopt;
  const auto& gpu = setting.cluster.gpu;
  const std::string_view key = gpu.host_c2c ? "host.c2c_efficiency" : "host.pcie_efficiency";
  for (const auto figure : {key, std::string_view("host.latency_us")}) {
    if (!bench.curves().find(figure)) {
      return fmt::format("offload: no {} is known for {} (data/curves), which copies to the host need", figure, gpu.name);
    }
  }
  if (!plan.offload.optimizer) return std::nullopt;
  if (!gpu.host_memory_bandwidth) {
    return fmt::format("offload=optimizer: node {} has no host_memory_GBps (data/nodes), at which the host updates its states",
                       setting.cluster.node.name);
  }
  if (setting.recipe.optimizer == core::OptimizerKind::muon) {
    return fmt::format("offload=optimizer with recipe {}: Newton-Schulz steps are GEMMs for the GPU; expected another optimizer",
                       setting.recipe.name);
  }
  return std::nullopt;
}

std::optional<std::string> why_not_table(const core::ParallelPlan& plan, const core::ScheduleTable& table) {
  if (table.pp != plan.pp || table.vpp != plan.vpp || table.micro_batches != plan.micro_batches()) {
    return fmt::format("a table of pp={} with {} stages a rank and {} micro-batches; the plan has pp={}, {} and {}",
                       table.pp, table.vpp, table.micro_batches, plan.pp, plan.vpp, plan.micro_batches());
  }
  const auto* schedule = core::find_schedule(plan.schedule);
  CORE_ASSERT(schedule != nullptr);
  if (table.placement != schedule->placement) {
    return fmt::format("its stages are placed otherwise than those of the plan's schedule {}; "
                       "expected a schedule of the table's placement in the plan", plan.schedule);
  }
  return core::why_not_executable(table);
}

std::optional<OverloadLimit> overload_limit(const Setting& setting, const Bench& bench, const StepReport& report) {
  const auto& plan = report.plan;
  if (plan.ep < 2 || setting.capacity > 0.0) return std::nullopt;
  const auto fits_at = [&](double overload) {
    auto loaded = setting;
    loaded.overload = overload;
    return simulate_step(loaded, bench, plan, core::Grain::cell, core::Fold::yes, Detail::answer).report.fits != Fits::no;
  };
  OverloadLimit limit;
  limit.fits_balanced = fits_at(1.0);
  if (!limit.fits_balanced) return limit;
  double low = 1.0, high = static_cast<double>(plan.ep);
  if (fits_at(high)) return limit;
  while (high - low > 0.01) {
    const double middle = (low + high) / 2.0;
    (fits_at(middle) ? low : high) = middle;
  }
  limit.stops_at = high;
  return limit;
}

std::string overload_text(const OverloadLimit& limit) {
  if (!limit.fits_balanced) return "experts: does not fit even with balanced routing";
  if (!limit.stops_at) return "experts: fits with any imbalance of their ranks";
  return fmt::format("experts: stops fitting when the fullest rank has {:.2f} times the mean of tokens", *limit.stops_at);
}

}  // namespace simulator

#include "simulator/step.h"

#include <fmt/format.h>

#include <algorithm>
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
  report.short_GiB = std::max(0.0, report.peak_memory_GiB - report.memory_limit_GiB);
}

void fill_speed(const Setting& setting, const core::ParallelPlan& plan, StepReport& report) {
  const auto gpus = static_cast<double>(plan.gpus());
  const double tokens = static_cast<double>(plan.global_batch * setting.seq);
  const auto band = uncertainty();
  report.low_s = report.step_time_s * band.low;
  report.high_s = report.step_time_s * band.high;
  report.tokens_per_s_per_gpu = tokens / report.step_time_s / gpus;
  report.tokens_per_day = tokens / report.step_time_s * 86400.0;
  const auto peak = setting.cluster.gpu.peak(setting.recipe.gemm_forward);
  CORE_ASSERT(peak.has_value());
  const auto flops = model_flops(setting, plan);
  report.tflops_per_gpu = flops.value / report.step_time_s / gpus / 1e12;
  report.bound_s = flops.value / gpus / peak->value;
  report.mfu = report.bound_s / report.step_time_s;
  if (setting.cluster.usd_per_gpu_hour) {
    report.usd_per_step = setting.cluster.usd_per_gpu_hour->value * gpus * report.step_time_s / 3600.0;
  }
}

void fill_groups(const core::StepGraph& graph, const Bench& bench, StepReport& report) {
  for (const auto& group : graph.groups) {
    if (group.name != "tp" && group.name != "dp") continue;
    if (group.size < 2) continue;
    report.groups.push_back(group.name + ": " + links_of(group, bench.topology()).says);
  }
  for (const auto& group : graph.groups) {
    if (group.name.starts_with("pp")) {
      report.groups.push_back(group.name + ": " + links_of(group, bench.topology()).says);
      break;
    }
  }
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
  const auto over = [&](int from) {
    return plan.zero >= from && plan.dp > 1 ? fmt::format("over {}", plan.dp) : std::string("whole");
  };
  return fmt::format("parameters {}, gradients {}, optimizer states {}", over(3), over(2), over(1));
}

SimulatedStep simulate_step(const Setting& setting, const Bench& bench, const core::ParallelPlan& plan,
                            core::Grain grain, core::Fold fold, Detail detail) {
  SimulatedStep step;
  const auto& framework = setting.framework_of(plan);
  step.work = core::step_work(setting.model, setting.bodies_of(plan), plan, setting.recipe, framework, setting.seq);
  const auto* schedule = core::find_schedule(plan.schedule);
  CORE_ASSERT(schedule != nullptr);
  const auto table = schedule->table(plan.pp, plan.vpp, plan.micro_batches());
  step.graph = core::lower(step.work, table, grain, fold);
  step.prices = prices_of(step.graph, bench.machine(), step.work.framework);
  step.timeline =
      run(step.graph, durations_of(step.prices), slowdown_of(bench.curves()), kernel_shares_of(step.prices));

  auto& report = step.report;
  const Ran ran{step.graph, step.timeline, step.prices};
  report.plan = plan;
  report.grain = grain;
  report.simulated_operations = step.graph.size();
  report.step_time_s = core::to_seconds(step.timeline.makespan).value + framework.step_overhead.value;
  fill_memory(step, setting, report);
  fill_speed(setting, plan, report);
  const auto rank = last_rank(ran);
  report.breakdown = breakdown_of(ran, rank);
  report.breakdown[index_of(Activity::other)] += framework.step_overhead.value;
  report.operations = by_operation(ran, rank);
  report.shares = origin_shares(report.operations);
  if (detail == Detail::depth) report.critical = critical_path(ran);
  fill_groups(step.graph, bench, report);
  report.notes = core::notes_on(plan);
  return step;
}

}  // namespace simulator

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/breakdown.h"
#include "simulator/pricer.h"

namespace simulator {

enum class Fits : std::uint8_t { yes, borderline, no };
std::string_view name_of(Fits fits);

struct StageMemory {
  std::int64_t stage = 0;   // pipeline rank
  std::int64_t layers = 0;  // on it, all chunks
  double peak_GiB = 0.0, states_GiB = 0.0;
  std::vector<double> terms_GiB;  // by MemoryTerm; sums to peak_GiB
};

// A step that was simulated: the element of "plans" of CLI.md.
struct StepReport {
  core::ParallelPlan plan;
  double step_time_s = 0.0, low_s = 0.0, high_s = 0.0;
  std::string interval_because;  // what low and high rest on
  double tokens_per_s_per_gpu = 0.0, tokens_per_day = 0.0;
  double mfu = 0.0, tflops_per_gpu = 0.0;
  double bound_s = 0.0;  // model FLOPs at the dense peak
  // The same rate by other conventions, TFLOP/s a GPU: attention over the keys that a query meets; 6 FLOPs for each active
  // parameter (all tables included) and token; all that kernels multiply, recompute included.
  double tflops_causal = 0.0, tflops_6nd = 0.0, tflops_hardware = 0.0;
  Fits fits = Fits::yes;
  double short_GiB = 0.0;  // on the fullest stage, when it does not fit
  std::int64_t fullest_stage = 0;
  double peak_memory_GiB = 0.0, memory_limit_GiB = 0.0;
  // Host memory that offload takes on the node that needs most, of what a node has, and what it lacks.
  double host_memory_GiB = 0.0, host_limit_GiB = 0.0, host_short_GiB = 0.0;
  std::vector<StageMemory> stages;
  Breakdown breakdown{};
  OriginShares shares;
  double usd_per_step = 0.0;
  std::vector<OperationTime> operations;
  std::vector<CriticalPart> critical;
  std::vector<std::string> groups;  // what each kind of collective spans
  std::vector<std::string> notes;
  core::Grain grain = core::Grain::mixed;  // that the numbers come from
  std::size_t simulated_operations = 0;
};

// A report with the graph and timeline that it was read from.
struct SimulatedStep {
  core::StepWork work;
  core::StepGraph graph;
  std::vector<Price> prices;
  core::Timeline timeline;
  StepReport report;
};

// A step whose time alone is asked for, with one set of constants after another. Its graph is made once, and run again only
// when durations differ from those of the first time.
class RepeatedStep {
 public:
  RepeatedStep(const Setting& setting, const core::ParallelPlan& plan, core::Grain grain, core::Fold fold);

  // As simulate_step reports it. The setting may differ from the first in how long the framework's host and overheads take (a
  // host that takes no time at all is another graph).
  core::Seconds time(const Setting& setting, const Bench& bench);

 private:
  struct Ran {
    std::vector<core::SimTime> durations;
    Contention contention;
    std::vector<double> kernel_shares;
    core::SimTime makespan = 0;
  };
  core::ParallelPlan plan_;
  core::StepGraph graph_;
  std::optional<Ran> first_;
};

enum class Detail : std::uint8_t { answer, depth };  // depth: operations, critical path

// Simulates a legal plan. Throws nothing on plans that do not fit: that is a value. Runs `given` in place of the table that
// the plan's schedule would write; it must be executable and of the plan's sizes and placement.
SimulatedStep simulate_step(const Setting& setting, const Bench& bench, const core::ParallelPlan& plan,
                            core::Grain grain, core::Fold fold, Detail detail,
                            const core::ScheduleTable* given = nullptr);

// Why a machine or a recipe does not allow what a plan offloads, one sentence, or nothing.
std::optional<std::string> why_not_offload(const Setting& setting, const Bench& bench, const core::ParallelPlan& plan);

// Why a table cannot stand for the plan's schedule: not executable, other sizes, another placement; or nothing.
std::optional<std::string> why_not_table(const core::ParallelPlan& plan, const core::ScheduleTable& table);

// Where a plan with expert parallelism stops fitting when routing is uneven: the overload factor (tokens on the fullest
// expert rank over the mean) is searched from 1 to ep, at which one rank has all tokens.
struct OverloadLimit {
  bool fits_balanced = true;  // at 1.0
  std::optional<double> stops_at;  // to 0.01; nothing: fits balanced and at any overload, or not even balanced
};
// Nothing for plans without expert parallelism, or with a capacity factor, which bounds what a rank takes.
std::optional<OverloadLimit> overload_limit(const Setting& setting, const Bench& bench, const StepReport& report);
std::string overload_text(const OverloadLimit& limit);  // a sentence

// Whether a peak fits a limit: within 3 % of it is borderline, since allocators and runs differ by that much.
Fits fits_in(double peak, double limit);

// Model FLOPs of a step, forward and backward, attention counted in full, recompute not counted (the convention that
// reports name "model_full").
core::Flops model_flops(const Setting& setting, const core::ParallelPlan& plan);

// What sharding does to each state: "parameters none, gradients none, optimizer over 8".
std::string sharding_text(const core::ParallelPlan& plan);

}  // namespace simulator

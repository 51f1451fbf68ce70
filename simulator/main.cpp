// simulate: one plan in depth; `simulate check`: predictions held against measured runs; `simulate calibrate`: curves and
// constants fitted to measured kernels and runs.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/error.h"
#include "core/io/document.h"
#include "planner/advice.h"
#include "planner/calibrate_main.h"
#include "planner/calibrate_with_main.h"
#include "simulator/check_main.h"
#include "simulator/cli.h"
#include "simulator/explain.h"
#include "simulator/plan_flags.h"
#include "simulator/report.h"
#include "simulator/request.h"
#include "simulator/trace.h"
#include "simulator/version.h"

namespace {

struct Options {
  simulator::Request request;
  std::string plan, schedule_file, trace, memory_timeline, format = "table", output, tokens, grain = "mixed", graph, explain;
  simulator::PlanFlags flags;
  std::vector<std::string> calibrate_with;
  bool unfold = false, quiet = false, no_better = false;
};

// A plan as text, or a file that holds one.
std::string plan_text(const std::string& argument) {
  if (argument.find('=') != std::string::npos || !std::filesystem::is_regular_file(argument)) return argument;
  std::ifstream in(argument);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The table that a file holds, checked against the plan.
core::ScheduleTable table_in(const std::string& file, const core::ParallelPlan& plan) {
  std::ifstream in(file);
  if (!in) throw core::InputError(fmt::format("--schedule-file {}: cannot be opened", file));
  std::ostringstream text;
  text << in.rdbuf();
  core::ScheduleTable table;
  try {
    table = core::parse_schedule(text.str());
  } catch (const core::InputError& error) {
    throw core::InputError(fmt::format("--schedule-file {}: {}", file, error.what()));
  }
  if (const auto reason = simulator::why_not_table(plan, table)) {
    throw core::InputError(fmt::format("--schedule-file {}: {}", file, *reason));
  }
  return table;
}

// ": bubble -1.2 s, cp_exposed +80 ms"; "" for none.
std::string terms_text(const std::vector<std::pair<simulator::Activity, double>>& terms) {
  std::string text;
  for (const auto& [term, seconds] : terms) {
    text += fmt::format("{}{} {}{}", text.empty() ? ": " : ", ", simulator::name_of(term), seconds < 0.0 ? "-" : "+",
                        simulator::seconds_text(std::abs(seconds)));
  }
  return text;
}

core::Grain grain_of(const std::string& name) {
  if (name == "cell") return core::Grain::cell;
  if (name == "op") return core::Grain::op;
  if (name == "mixed") return core::Grain::mixed;
  throw core::InputError(fmt::format("--grain: found \"{}\", expected cell, mixed or op", name));
}

core::ParallelPlan read_plan(Options& options, core::PlanText& text) {
  if (options.plan.empty() && options.flags.text().empty()) {
    throw core::InputError("--plan: missing, expected a plan such as \"tp=8 sp pp=4 dp=2 mb=1\"");
  }
  text = core::parse_plan(plan_text(options.plan) + " " + options.flags.text(), "--plan");
  auto& request = options.request;
  if (text.has_recipe) {
    if (!request.recipe.empty() && request.recipe != text.plan.recipe) {
      throw core::InputError(fmt::format("--recipe {}: the plan says recipe={}", request.recipe, text.plan.recipe));
    }
    request.recipe = text.plan.recipe;
  }
  if (text.has_global_batch) {
    if (request.global_batch != 0 && request.global_batch != text.plan.global_batch) {
      throw core::InputError(fmt::format("--gbs {}: the plan says gbs={}", request.global_batch, text.plan.global_batch));
    }
    request.global_batch = text.plan.global_batch;
  }
  return text.plan;
}

int run(Options& options) {
  auto& request = options.request;
  if (request.gpus == 0 && request.cluster.empty()) {
    throw core::InputError("--gpus: missing, expected a number of GPUs such as --gpus 64");
  }
  if (!options.explain.empty() && options.format == "csv") {
    throw core::InputError("--explain: not said in csv; expected --format table, markdown or json");
  }
  core::PlanText text;
  read_plan(options, text);
  if (!options.tokens.empty()) request.tokens = simulator::parse_count(options.tokens, "--tokens");
  const auto grain = grain_of(options.grain);
  auto setting = simulator::make_setting(request);
  calibrate_with("simulate", options.calibrate_with, request, setting, options.quiet);
  auto plan = core::complete_plan(text, setting.model, request.gpus, request.global_batch,
                                  setting.cluster.node.gpus);
  plan.recipe = request.recipe;
  if (const auto reason = core::why_not(setting.model, plan, request.gpus, request.seq)) {
    throw core::InputError(fmt::format("--plan: {}", *reason));
  }
  simulator::warn("simulate", setting.model.warnings, options.quiet);
  simulator::warn("simulate", core::notes_on(plan, setting.gpus_together()), options.quiet);

  std::optional<core::ScheduleTable> given;
  if (!options.schedule_file.empty()) given = table_in(options.schedule_file, plan);

  const simulator::Bench bench(setting);
  if (const auto reason = simulator::why_not_offload(setting, bench, plan)) {
    throw core::InputError(fmt::format("--plan: {}", *reason));
  }
  const auto step = simulator::simulate_step(setting, bench, plan, grain,
                                             options.unfold ? core::Fold::no : core::Fold::yes, simulator::Detail::depth,
                                             given ? &*given : nullptr);
  std::vector<simulator::Explanation> explained;
  if (!options.explain.empty()) explained = simulator::explain(step, setting, bench, options.explain);
  if (!options.trace.empty()) simulator::deliver(simulator::chrome_trace(step), options.trace);
  if (!options.memory_timeline.empty()) simulator::deliver(simulator::memory_timeline_csv(step), options.memory_timeline);
  if (!options.graph.empty()) simulator::deliver(core::to_text(step.graph), options.graph);
  const auto& report = step.report;
  std::optional<planner::Change> change;
  if (report.fits == simulator::Fits::no) change = planner::smallest_change(setting, bench, plan);
  std::vector<planner::Ranked> better;
  std::vector<std::vector<std::pair<simulator::Activity, double>>> by_terms;  // of each of them
  // Ranked plans wait for data and checkpoints as well; their times leave it out.
  const double stalls = setting.data_stall_s + setting.checkpoint_s;
  auto without_stalls = report;
  without_stalls.step_time_s -= stalls;
  if (!options.no_better) better = planner::better_plans(setting, bench, without_stalls);
  for (const auto& r : better) {
    const auto faster = simulator::simulate_step(setting, bench, r.plan, core::Grain::cell, core::Fold::yes,
                                                 simulator::Detail::answer);
    by_terms.push_back(simulator::differing_terms(report.breakdown, faster.report.breakdown));
  }
  // The limit is that of the plan's own schedule.
  std::optional<simulator::OverloadLimit> overload;
  if (!given) overload = simulator::overload_limit(setting, bench, report);

  std::string out;
  if (options.format == "json") {
    core::JsonWriter json;
    json.begin_object().member("version", simulator::version());
    simulator::write_request(json, request);
    simulator::write_model(json, setting.model);
    simulator::write_cluster(json, setting);
    simulator::write_calibration(json, setting);
    simulator::write_step(json, setting, report, request.tokens);
    simulator::write_operations(json, report);
    json.key("explained").begin_list();
    for (const auto& e : explained) simulator::write_explanation(json, e);
    json.end_list();
    json.key("expert_overload_limit");
    overload && overload->stops_at ? json.value(*overload->stops_at) : json.null();
    json.key("smallest_change");
    if (change) {
      json.begin_object().member("plan", core::to_text(change->report.plan)).member("what", change->what)
          .member("peak_memory_GiB", change->report.peak_memory_GiB)
          .member("step_time_s", change->report.step_time_s).end_object();
    } else {
      json.null();
    }
    json.key("better_plans").begin_list();
    for (std::size_t i = 0; i < better.size(); ++i) {
      json.begin_object().member("plan", core::to_text(better[i].plan))
          .member("step_time_s", core::to_seconds(better[i].time).value + stalls);
      json.key("difference_s").begin_object();
      for (const auto& [term, seconds] : by_terms[i]) json.member(simulator::name_of(term), seconds);
      json.end_object().end_object();
    }
    json.end_list();
    simulator::write_sources(json, setting);
    json.end_object();
    out = json.text();
  } else if (options.format == "csv") {
    out = simulator::step_csv_header() + simulator::step_csv(setting, report, 1);
  } else {
    out = fmt::format("{}, {} x {}, sequence {}\n{}\n\n{}{}\n", setting.model.name, plan.gpus(), setting.cluster.gpu.name,
                      setting.seq, core::to_text(plan), simulator::headline_text(setting, report, request.tokens),
                      simulator::verdict_text(report));
    if (change) {
      out += fmt::format("smallest change that fits: {} ({:.1f} GiB, {} a step)\n", change->what,
                         change->report.peak_memory_GiB, simulator::seconds_text(change->report.step_time_s));
    }
    for (std::size_t i = 0; i < better.size(); ++i) {
      out += fmt::format("{}: {} ({}{})\n", report.fits == simulator::Fits::no ? "fits" : "faster",
                         core::to_text(better[i].plan),
                         simulator::seconds_text(core::to_seconds(better[i].time).value + stalls), terms_text(by_terms[i]));
    }
    out += '\n' + simulator::breakdown_text(report) + '\n' + simulator::memory_text(report) + '\n' +
           simulator::operations_text(report, 16) + '\n';
    if (overload) out += simulator::overload_text(*overload) + '\n';
    for (const auto& g : report.groups) out += g + '\n';
    for (const auto& e : explained) out += '\n' + simulator::explanation_text(e);
    if (options.format == "markdown") out = "```\n" + out + "```\n";
  }
  simulator::deliver(out, options.output);
  return report.fits == simulator::Fits::no ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "check") {
    return simulator::guarded("simulate", [&] { return check_main(argc - 1, argv + 1); });
  }
  if (argc > 1 && std::string_view(argv[1]) == "calibrate") {
    return simulator::guarded("simulate", [&] { return calibrate_main(argc - 1, argv + 1); });
  }
  Options options;
  CLI::App app{"Simulates one parallel plan of a training step: time, memory by stage, and why."};
  app.set_version_flag("--version", std::string(simulator::version()));
  app.footer("simulate check FILE.csv... holds predictions against measured runs: simulate check --help\n"
             "simulate calibrate [FILE.csv...] fits figures of data/ to kernels, or to such runs: simulate calibrate --help");
  auto& r = options.request;
  app.add_option("--model", r.model, "shipped name or path to a Hugging Face config.json")->capture_default_str();
  app.add_option("--gpus", r.gpus, "number of GPUs")->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--gpu", r.gpu, "shipped name, default h100-sxm");
  app.add_option("--cluster", r.cluster, "shipped name or file");
  app.add_option("--plan,plan", options.plan, "plan text such as \"tp=8 sp pp=4 dp=2 mb=1 gbs=512\", or a file with one");
  app.add_option("--seq,--seq-length", r.seq, "tokens of a sequence")->check(CLI::PositiveNumber);
  app.add_option("--gbs,--global-batch-size", r.global_batch, "sequences of a step")->check(CLI::PositiveNumber);
  app.add_option("--recipe", r.recipe, "numeric recipe");
  app.add_option("--framework", r.framework, "framework whose memory and overheads are assumed")->capture_default_str();
  app.add_option("--attention", r.attention, "unfused, flash1, flash2 or flash3; default the GPU's best");
  app.add_option("--price", r.price, "$ a GPU-hour")->check(CLI::Range(0.0, 1e6));
  app.add_option("--tokens", options.tokens, "tokens to train, for days and $, such as 1T");
  app.add_option("--tp,--tensor-model-parallel-size", options.flags.tp, "as tp=N of a plan");
  app.add_option("--pp,--pipeline-model-parallel-size", options.flags.pp, "as pp=N");
  app.add_option("--vpp,--num-virtual-stages-per-pipeline-rank", options.flags.vpp, "as vpp=N");
  app.add_option("--cp,--context-parallel-size", options.flags.cp, "as cp=N");
  app.add_option("--ep,--expert-model-parallel-size", options.flags.ep, "as ep=N");
  app.add_option("--etp,--expert-tensor-parallel-size", options.flags.etp, "as etp=N");
  app.add_option("--dp", options.flags.dp, "as dp=N");
  app.add_option("--zero,--zero-stage", options.flags.zero, "as zero=N");
  app.add_option("--mbs,--micro-batch-size", options.flags.mbs, "as mb=N");
  app.add_option("--recompute", options.flags.recompute, "as recompute=...");
  app.add_option("--schedule", options.flags.schedule, "as schedule=...");
  app.add_option("--schedule-file", options.schedule_file, "run this table in place of the schedule's: a line a rank, 0F0 0B0");
  app.add_option("--expert-overload", r.expert_overload, "tokens on the fullest expert rank over the mean")->capture_default_str();
  app.add_option("--capacity-factor", r.capacity_factor, "most tokens of an expert over the mean; 0 = dropless")->capture_default_str();
  app.add_option("--data-stall-ms", r.data_stall_ms, "milliseconds a step waits for its data")->capture_default_str();
  app.add_option("--checkpoint-s", r.checkpoint_s, "seconds that writing a checkpoint stops training");
  app.add_option("--checkpoint-every", r.checkpoint_every, "steps between two checkpoints");
  app.add_flag("--sp,--sequence-parallel", options.flags.sp, "as sp");
  add_calibrate_with(app, options.calibrate_with);
  app.add_option("--trace", options.trace, "write a Chrome/Perfetto trace");
  app.add_option("--memory-timeline", options.memory_timeline, "write memory over time as CSV");
  app.add_option("--graph", options.graph, "write the step graph as text");
  app.add_option("--grain", options.grain, "cell, mixed or op")->capture_default_str();
  app.add_option("--explain", options.explain, "how an operation comes by its duration: its name, or a part of it");
  app.add_flag("--unfold", options.unfold, "simulate every rank by itself");
  app.add_flag("--no-better-plans", options.no_better, "do not search for faster plans");
  app.add_option("--format", options.format, "table, json, csv or markdown")->check(CLI::IsMember({"table", "json", "csv", "markdown"}));
  app.add_option("--output", options.output, "file for the result");
  app.add_flag("--quiet", options.quiet, "no warnings");
  return simulator::guarded("simulate", [&] {
    if (const auto status = simulator::parse<CLI::ExtrasError, CLI::ParseError>(app, argc, argv)) return *status;
    return run(options);
  });
}

// simulate: one plan in depth.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "core/io/document.h"
#include "planner/search.h"
#include "simulator/cli.h"
#include "simulator/report.h"
#include "simulator/request.h"
#include "simulator/trace.h"
#include "simulator/version.h"

namespace {

struct Options {
  simulator::Request request;
  std::string plan, trace, memory_timeline, format = "table", output, tokens, grain = "mixed", graph;
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

core::Grain grain_of(const std::string& name) {
  if (name == "cell") return core::Grain::cell;
  if (name == "op") return core::Grain::op;
  if (name == "mixed") return core::Grain::mixed;
  throw core::InputError(fmt::format("--grain: found \"{}\", expected cell, mixed or op", name));
}

core::ParallelPlan read_plan(Options& options, core::PlanText& text) {
  text = core::parse_plan(plan_text(options.plan), "--plan");
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

// Single changes that make a plan fit, the fastest of those.
struct Change {
  core::ParallelPlan plan;
  std::string what;
};

std::vector<Change> single_changes(const simulator::Setting& setting, const core::ParallelPlan& plan) {
  std::vector<Change> out;
  const auto add = [&](core::ParallelPlan changed, std::string what) {
    if (!core::why_not(setting.model, changed, plan.gpus(), setting.seq)) out.push_back({std::move(changed), std::move(what)});
  };
  auto p = plan;
  if (plan.recompute == core::Recompute::none) {
    p.recompute = core::Recompute::selective;
    add(p, "recompute=selective");
  }
  if (plan.recompute != core::Recompute::full) {
    p = plan, p.recompute = core::Recompute::full;
    const auto layers = core::layers_of_stages(plan, setting.model.layers());
    for (std::int64_t n = 1; n < *std::max_element(layers.begin(), layers.end()); ++n) {
      p.recompute_layers = n;
      add(p, fmt::format("recompute=full:{}", n));
    }
    p.recompute_layers = 0;
    add(p, "recompute=full");
  }
  for (int zero = plan.zero + 1; zero <= 3 && plan.dp > 1; ++zero) {
    p = plan, p.zero = zero;
    add(p, fmt::format("zero={}", zero));
  }
  if (!plan.sp && plan.tp > 1) {
    p = plan, p.sp = true;
    add(p, "sp");
  }
  for (auto mb = plan.micro_batch / 2; mb >= 1; mb /= 2) {
    p = plan, p.micro_batch = mb;
    add(p, fmt::format("mb={}", mb));
  }
  for (std::int64_t k = 2; k <= plan.dp; k *= 2) {
    if (plan.dp % k != 0) continue;
    p = plan, p.dp = plan.dp / k, p.tp = plan.tp * k;
    add(p, fmt::format("tp={} dp={}", p.tp, p.dp));
    p = plan, p.dp = plan.dp / k, p.pp = plan.pp * k;
    if (p.layout == core::Layout::even && setting.model.layers() % p.stages() != 0) p.layout = core::Layout::slots;
    add(p, fmt::format("pp={} dp={}", p.pp, p.dp));
  }
  return out;
}

std::optional<std::pair<std::string, simulator::StepReport>> smallest_change(const simulator::Setting& setting,
                                                                             const simulator::Bench& bench,
                                                                             const core::ParallelPlan& plan) {
  std::optional<std::pair<std::string, simulator::StepReport>> best;
  simulator::Pricer pricer(setting, bench);
  std::vector<simulator::RankMemory> memory;
  for (auto& change : single_changes(setting, plan)) {
    const auto table = simulator::short_table(*core::find_schedule(change.plan.schedule), change.plan.pp,
                                              change.plan.vpp, change.plan.micro_batches());
    pricer.memory(change.plan, table, memory);
    const auto most = std::max_element(memory.begin(), memory.end(),
                                       [](const auto& a, const auto& b) { return a.total() < b.total(); });
    if (static_cast<double>(most->total()) > setting.cluster.gpu.memory_usable.value) continue;
    auto step = simulator::simulate_step(setting, bench, change.plan, core::Grain::cell, core::Fold::yes,
                                         simulator::Detail::answer);
    if (!best || step.report.step_time_s < best->second.step_time_s) best.emplace(change.what, std::move(step.report));
  }
  return best;
}

std::vector<planner::Ranked> better_plans(const simulator::Setting& setting, const simulator::Bench& bench,
                                          const core::ParallelPlan& plan) {
  planner::Question question{&setting.model, plan.gpus(), plan.global_batch, setting.seq, plan.recipe, {}};
  planner::SearchOptions options;
  options.keep = 3;
  return planner::search(setting, bench, question, planner::axes_of(question), options).best;
}

int run(Options& options) {
  auto& request = options.request;
  core::PlanText text;
  read_plan(options, text);
  if (!options.tokens.empty()) request.tokens = simulator::parse_count(options.tokens, "--tokens");
  const auto grain = grain_of(options.grain);
  auto setting = simulator::make_setting(request);
  auto plan = core::complete_plan(text, setting.model, request.gpus, request.global_batch);
  plan.recipe = request.recipe;
  if (const auto reason = core::why_not(setting.model, plan, request.gpus, request.seq)) {
    throw core::InputError(fmt::format("--plan: {}", *reason));
  }
  simulator::warn("simulate", setting.model.warnings, options.quiet);
  simulator::warn("simulate", core::notes_on(plan), options.quiet);

  const simulator::Bench bench(setting);
  const auto step = simulator::simulate_step(setting, bench, plan, grain,
                                             options.unfold ? core::Fold::no : core::Fold::yes, simulator::Detail::depth);
  if (!options.trace.empty()) simulator::deliver(simulator::chrome_trace(step), options.trace);
  if (!options.memory_timeline.empty()) simulator::deliver(simulator::memory_timeline_csv(step), options.memory_timeline);
  if (!options.graph.empty()) simulator::deliver(core::to_text(step.graph), options.graph);
  const auto& report = step.report;
  std::optional<std::pair<std::string, simulator::StepReport>> change;
  if (report.fits == simulator::Fits::no) change = smallest_change(setting, bench, plan);
  std::vector<planner::Ranked> better;
  if (!options.no_better) better = better_plans(setting, bench, plan);
  std::erase_if(better, [&](const planner::Ranked& r) {
    return report.fits != simulator::Fits::no && core::to_seconds(r.time).value >= report.step_time_s;
  });

  std::string out;
  if (options.format == "json") {
    core::JsonWriter json;
    json.begin_object().member("version", simulator::version());
    simulator::write_request(json, request);
    simulator::write_model(json, setting.model);
    simulator::write_cluster(json, setting);
    simulator::write_step(json, setting, report, request.tokens);
    simulator::write_operations(json, report);
    json.key("smallest_change");
    if (change) {
      json.begin_object().member("plan", core::to_text(change->second.plan)).member("what", change->first)
          .member("peak_memory_GiB", change->second.peak_memory_GiB)
          .member("step_time_s", change->second.step_time_s).end_object();
    } else {
      json.null();
    }
    json.key("better_plans").begin_list();
    for (const auto& r : better) {
      json.begin_object().member("plan", core::to_text(r.plan)).member("step_time_s", core::to_seconds(r.time).value).end_object();
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
      out += fmt::format("smallest change that fits: {} ({:.1f} GiB, {} a step)\n", change->first,
                         change->second.peak_memory_GiB, simulator::seconds_text(change->second.step_time_s));
    }
    for (const auto& r : better) {
      out += fmt::format("faster: {} ({})\n", core::to_text(r.plan), simulator::seconds_text(core::to_seconds(r.time).value));
    }
    out += '\n' + simulator::breakdown_text(report) + '\n' + simulator::memory_text(report) + '\n' +
           simulator::operations_text(report, 16) + '\n';
    for (const auto& g : report.groups) out += g + '\n';
    if (options.format == "markdown") out = "```\n" + out + "```\n";
  }
  simulator::deliver(out, options.output);
  return report.fits == simulator::Fits::no ? 1 : 0;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Simulates one parallel plan of a training step: time, memory by stage, and why."};
  app.set_version_flag("--version", std::string(simulator::version()));
  auto& r = options.request;
  app.add_option("--model", r.model, "shipped name or path to a Hugging Face config.json")->capture_default_str();
  app.add_option("--gpus", r.gpus, "number of GPUs")->required()->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--gpu", r.gpu, "shipped name, default h100-sxm");
  app.add_option("--cluster", r.cluster, "shipped name or file");
  app.add_option("--plan,plan", options.plan, "plan text such as \"tp=8 sp pp=4 dp=2 mb=1 gbs=512\", or a file with one")->required();
  app.add_option("--seq,--seq-length", r.seq, "tokens of a sequence")->check(CLI::PositiveNumber);
  app.add_option("--gbs,--global-batch-size", r.global_batch, "sequences of a step")->check(CLI::PositiveNumber);
  app.add_option("--recipe", r.recipe, "numeric recipe");
  app.add_option("--framework", r.framework, "framework whose memory and overheads are assumed")->capture_default_str();
  app.add_option("--attention", r.attention, "unfused, flash1, flash2 or flash3; default the GPU's best");
  app.add_option("--price", r.price, "$ a GPU-hour");
  app.add_option("--tokens", options.tokens, "tokens to train, for days and $, such as 1T");
  app.add_option("--trace", options.trace, "write a Chrome/Perfetto trace");
  app.add_option("--memory-timeline", options.memory_timeline, "write memory over time as CSV");
  app.add_option("--graph", options.graph, "write the step graph as text");
  app.add_option("--grain", options.grain, "cell, mixed or op")->capture_default_str();
  app.add_flag("--unfold", options.unfold, "simulate every rank by itself");
  app.add_flag("--no-better-plans", options.no_better, "do not search for faster plans");
  app.add_option("--format", options.format, "table, json, csv or markdown")->check(CLI::IsMember({"table", "json", "csv", "markdown"}));
  app.add_option("--output", options.output, "file for the result");
  app.add_flag("--quiet", options.quiet, "no warnings");
  return simulator::guarded("simulate", [&] {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ExtrasError&) {
      throw core::InputError(simulator::unknown_argument(app.remaining(true), flags_of(app)));
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app.exit(error);
      throw core::InputError(error.what());
    }
    return run(options);
  });
}

// plan: the best parallel plans for a model on a cluster.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "core/error.h"
#include "core/io/document.h"
#include "planner/answer.h"
#include "planner/budget_main.h"
#include "planner/calibrate_with_main.h"
#include "planner/listing.h"
#include "simulator/cli.h"
#include "simulator/plan_flags.h"
#include "simulator/version.h"

namespace {

struct Options {
  simulator::Request request;
  std::string allow, tokens, fix, objective = "time", format = "table", output, list, model_argument;
  simulator::PlanFlags flags;
  std::vector<std::string> calibrate_with;
  bool quiet = false, reproducible = false;
  std::size_t top = 10;
  int threads = 0;
};

std::atomic<bool> interrupted{false};

// Degrees that cannot make up the GPUs are a mistake of the question, not a negative answer.
void check_fixed_degrees(const planner::Question& q) {
  std::int64_t product = 1;
  std::string said;
  for (const auto& key : q.fixed.keys) {
    const auto& plan = q.fixed.plan;
    const auto degree = key == "tp" ? plan.tp : key == "pp" ? plan.pp : key == "dp" ? plan.dp : 1;
    if (degree > 1) said += fmt::format("{}{}={}", said.empty() ? "" : " x ", key, degree);
    product *= degree;
  }
  if (q.gpus % product != 0) throw core::InputError(fmt::format("--fix: {} does not divide {} GPUs", said, q.gpus));
}

planner::Question question_of(const Options& o, const simulator::Setting& setting, const simulator::Bench& bench) {
  planner::Question q;
  q.model = &setting.model;
  q.gpus = o.request.gpus;
  q.global_batch = o.request.global_batch;
  q.seq = setting.seq;
  q.recipe = setting.recipe.name;
  q.gpus_per_node = setting.gpus_together();
  q.dispatch = planner::best_dispatch(bench.curves());
  q.fixed = core::parse_plan(o.fix + " " + o.flags.text(), "--fix");
  check_fixed_degrees(q);
  if (!o.allow.empty()) {
    if (o.allow != "offload") throw core::InputError(fmt::format("--allow: found \"{}\", expected offload", core::printable(o.allow)));
    std::string refused;
    for (const auto& offload : planner::all_offloads()) {
      auto plan = q.fixed.plan;
      plan.offload = offload;
      const auto reason = simulator::why_not_offload(setting, bench, plan);
      if (!reason) q.allowed.push_back(offload);
      else if (refused != *reason) simulator::warn("plan", {*reason}, o.quiet);
      refused = reason.value_or(refused);
    }
  }
  if (const auto reason = simulator::why_not_offload(setting, bench, q.fixed.plan)) {
    throw core::InputError(fmt::format("--fix: {}", *reason));
  }
  if (q.fixed.has_recipe && q.fixed.plan.recipe != q.recipe) {
    throw core::InputError(fmt::format("--fix: recipe={}: give the recipe with --recipe", q.fixed.plan.recipe));
  }
  if (q.fixed.has_global_batch && q.fixed.plan.global_batch != q.global_batch) {
    throw core::InputError(fmt::format("--fix: gbs={}: give the batch with --gbs", q.fixed.plan.global_batch));
  }
  return q;
}

std::string written(const Options& o, const simulator::Setting& setting, const planner::Answer& answer) {
  const planner::ReportOptions report{o.request, o.reproducible};
  if (o.format == "json") return planner::answer_json(setting, answer, report);
  if (o.format == "csv") return planner::answer_csv(setting, answer);
  if (o.format == "markdown") return planner::answer_markdown(setting, answer, report);
  return planner::answer_table(setting, answer, report);
}

int run_plan(Options& o) {
  const auto begin = std::chrono::steady_clock::now();
  if (!o.tokens.empty()) o.request.tokens = simulator::parse_count(o.tokens, "--tokens");
  auto setting = simulator::make_setting(o.request);
  simulator::warn("plan", setting.model.warnings, o.quiet);
  calibrate_with("plan", o.calibrate_with, o.request, setting, o.quiet);
  const simulator::Bench bench(setting);
  const auto question = question_of(o, setting, bench);
  planner::SearchOptions options;
  options.keep = std::max<std::size_t>(20, o.top + 10);
  options.threads = o.threads;
  const bool terminal = isatty(STDERR_FILENO) != 0 && !o.quiet;
  if (terminal) {
    options.progress = [&](std::int64_t done) { std::fprintf(stderr, "\rplan: %lld plans looked at", static_cast<long long>(done)); };
  }
  std::signal(SIGINT, [](int) { interrupted = true; });
  options.stop = [] { return interrupted.load(); };
  planner::Answer answer;
  answer.search = planner::search(setting, bench, question, planner::axes_of(question), options);
  if (terminal) std::fprintf(stderr, "\r\033[K");
  if (interrupted) simulator::warn("plan", {"interrupted: the best plans so far"}, false);
  answer.plans = planner::refine(setting, bench, answer.search.best, o.top);
  answer.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  simulator::deliver(written(o, setting, answer), o.output);
  return answer.plans.empty() ? 1 : 0;
}

void add_options(CLI::App& app, Options& o) {
  auto& r = o.request;
  app.add_option("--gpus", r.gpus, "number of GPUs")->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--model", r.model, "shipped name or path to a Hugging Face config.json")->capture_default_str();
  app.add_option("--gpu", r.gpu, "shipped name, default h100-sxm");
  app.add_option("--cluster", r.cluster, "shipped name or file");
  app.add_option("--seq,--seq-length", r.seq, "tokens of a sequence; default 4096, or the model's longest")->check(CLI::PositiveNumber);
  app.add_option("--gbs,--global-batch-size", r.global_batch, "sequences of a step; default 4 Mi tokens")->check(CLI::PositiveNumber);
  app.add_option("--tokens", o.tokens, "tokens to train, for days and $, such as 1T");
  app.add_option("--recipe", r.recipe, "numeric recipe; default bf16 (fp16 where there is no bf16)");
  app.add_option("--framework", r.framework, "framework whose memory and overheads are assumed")->capture_default_str();
  app.add_option("--attention", r.attention, "unfused, flash1, flash2 or flash3; default the GPU's best");
  app.add_option("--price", r.price, "$ a GPU-hour")->check(CLI::Range(0.0, 1e6));
  app.add_option("--expert-overload", r.expert_overload, "tokens on the fullest expert rank over the mean")->capture_default_str();
  app.add_option("--capacity-factor", r.capacity_factor, "most tokens of an expert over the mean; 0 = dropless")->capture_default_str();
  app.add_option("--data-stall-ms", r.data_stall_ms, "milliseconds a step waits for its data")->capture_default_str();
  app.add_option("--checkpoint-s", r.checkpoint_s, "seconds that writing a checkpoint stops training");
  app.add_option("--checkpoint-every", r.checkpoint_every, "steps between two checkpoints");
  app.add_option("--objective", o.objective, "time or cost (the same order for a fixed number of GPUs)")
      ->check(CLI::IsMember({"time", "cost"}));
  app.add_option("--top", o.top, "plans to show")->capture_default_str()->check(CLI::Range(std::size_t{1}, std::size_t{1000}));
  app.add_option("--fix", o.fix, "settings to hold, such as \"tp=8 pp=2\"");
  app.add_option("--allow", o.allow, "offload: try plans that keep states or activations in host memory too");
  app.add_option("--tp,--tensor-model-parallel-size", o.flags.tp, "as tp=N of a plan");
  app.add_option("--pp,--pipeline-model-parallel-size", o.flags.pp, "as pp=N");
  app.add_option("--vpp,--num-virtual-stages-per-pipeline-rank", o.flags.vpp, "as vpp=N");
  app.add_option("--cp,--context-parallel-size", o.flags.cp, "as cp=N");
  app.add_option("--ep,--expert-model-parallel-size", o.flags.ep, "as ep=N");
  app.add_option("--etp,--expert-tensor-parallel-size", o.flags.etp, "as etp=N");
  app.add_option("--dp", o.flags.dp, "as dp=N");
  app.add_option("--zero,--zero-stage", o.flags.zero, "as zero=N");
  app.add_option("--mbs,--micro-batch-size", o.flags.mbs, "as mb=N");
  app.add_option("--recompute", o.flags.recompute, "as recompute=...");
  app.add_option("--schedule", o.flags.schedule, "as schedule=...");
  app.add_flag("--sp,--sequence-parallel", o.flags.sp, "as sp");
  app.add_option("--threads", o.threads, "threads of the search; the answer does not depend on it")->check(CLI::NonNegativeNumber);
  app.add_option("--list", o.list,
                 "names of models, families, gpus, nodes, clusters, recipes, schedules, collectives, frameworks or laws; "
                 "calibrations that are kept");
  add_calibrate_with(app, o.calibrate_with);
  app.add_option("--format", o.format, "table, json, csv or markdown")->check(CLI::IsMember({"table", "json", "csv", "markdown"}));
  app.add_option("--output", o.output, "file for the result");
  app.add_flag("--reproducible", o.reproducible, "leave out elapsed_s");
  app.add_flag("--quiet", o.quiet, "no progress, no warnings");
}

}  // namespace

int main(int argc, char** argv) {
  // Graphs come and go by the megabyte: keep their pages instead of handing them back to the system each time.
  mallopt(M_MMAP_THRESHOLD, 256 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  Options options;
  CLI::App app{"Finds the best parallel plans to train a model on a number of GPUs."};
  app.set_version_flag("--version", std::string(simulator::version()));
  add_options(app, options);
  auto* model = app.add_subcommand("model", "what a model is: parameters by kind of layer, FLOPs, cache");
  model->add_option("model", options.model_argument, "shipped name or path to a config.json")->required();
  model->add_option("--format", options.format, "table or json")->check(CLI::IsMember({"table", "json"}));
  model->add_option("--output", options.output, "file for the result");
  auto* budget = app.add_subcommand("budget", "the model size, tokens, recipe and plan that GPU time, dollars or FLOPs are best spent on");
  const auto run_budget = add_budget(*budget);
  return simulator::guarded("plan", [&] {
    if (const auto status = simulator::parse<CLI::ExtrasError, CLI::ParseError>(app, argc, argv)) return *status;
    if (options.list == "calibrations") return simulator::deliver(calibrations_listing(), options.output), 0;
    if (!options.list.empty()) return simulator::deliver(planner::listing(options.list), options.output), 0;
    if (budget->parsed()) return run_budget();
    if (model->parsed()) {
      const auto text = options.format == "json" ? planner::model_json(options.model_argument)
                                                 : planner::model_table(options.model_argument);
      return simulator::deliver(text, options.output), 0;
    }
    if (options.request.gpus == 0 && options.request.cluster.empty()) {
      throw core::InputError("--gpus: missing, expected a number of GPUs such as --gpus 64");
    }
    return run_plan(options);
  });
}

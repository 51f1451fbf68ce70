// plan budget: the model size, tokens, recipe and plan that a budget is best spent on.
#include "planner/budget_main.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <memory>

#include "core/error.h"
#include "planner/budget/report.h"
#include "planner/parallel.h"
#include "simulator/cli.h"
#include "simulator/report.h"

namespace {

struct Options {
  planner::BudgetRequest request;
  std::optional<double> days;
  std::string usd, flops, inference_tokens, unique_tokens, format = "table", output;
  bool quiet = false, reproducible = false;
  int threads = 0;
};

double positive(double value, const char* flag) {
  if (!std::isfinite(value) || value <= 0.0)
    throw core::InputError(fmt::format("{}: found {}, expected a positive number", flag, value));
  return value;
}

planner::Budget budget_of(const Options& o) {
  const int given = (o.days ? 1 : 0) + (o.usd.empty() ? 0 : 1) + (o.flops.empty() ? 0 : 1);
  if (given != 1) throw core::InputError(fmt::format("budget: found {} of --days, --usd and --flops, expected one", given));
  if (o.days) return {planner::Budget::Kind::days, positive(*o.days, "--days")};
  if (!o.usd.empty()) return {planner::Budget::Kind::usd, simulator::parse_count(o.usd, "--usd")};
  return {planner::Budget::Kind::flops, simulator::parse_count(o.flops, "--flops")};
}

// Options that were given and change nothing.
std::vector<std::string> idle_options(const CLI::App& app, const planner::BudgetRequest& r) {
  std::vector<std::string> out;
  const auto idle = [&](const std::string& flag, bool is_idle, const char* without) {
    if (is_idle && app.count(flag) > 0) out.push_back(flag + ": has no effect " + without);
  };
  const bool is_list = !r.sizes.empty() && r.sizes.find("..") == std::string::npos;
  idle("--serving-mfu", r.inference_tokens == 0.0, "without --inference-tokens");
  idle("--serving-mfu", r.inference_tokens > 0.0 && r.budget.kind == planner::Budget::Kind::flops, "on a budget in FLOPs");
  idle("--points", is_list || !r.model.empty(), "where sizes are named");
  idle("--family", !r.model.empty(), "beside --model");
  return out;
}

void take(Options& o) {
  auto& r = o.request;
  r.budget = budget_of(o);
  if (r.gpus.empty() && r.machine.cluster.empty()) {
    throw core::InputError("--gpus: missing, expected a number of GPUs such as --gpus 1024, or a list of them");
  }
  if (!r.model.empty() && !r.sizes.empty()) throw core::InputError("--sizes: found beside --model, expected one of them");
  if (!o.inference_tokens.empty()) r.inference_tokens = simulator::parse_count(o.inference_tokens, "--inference-tokens");
  if (!o.unique_tokens.empty()) r.unique_tokens = simulator::parse_count(o.unique_tokens, "--unique-tokens");
}

std::string written(const Options& o, const planner::BudgetReport& report) {
  if (o.format == "json") return planner::budget_json(report);
  if (o.format == "csv") return planner::budget_csv(report);
  if (o.format == "markdown") return planner::budget_markdown(report);
  return planner::budget_table(report);
}

int run_budget(const CLI::App& app, Options& o) {
  const auto begin = std::chrono::steady_clock::now();
  take(o);
  simulator::warn("plan", idle_options(app, o.request), o.quiet);
  const auto setup = planner::set_up(o.request);
  planner::BudgetAnswer answer;
  planner::ChooseOptions choice;
  const bool terminal = isatty(STDERR_FILENO) != 0 && !o.quiet;
  if (terminal)
    choice.progress = [](std::size_t done, std::size_t all) { fmt::print(stderr, "\rplan: {} of {} sizes", done, all); };
  planner::on_threads(o.threads, [&] { answer = planner::answer_budget(setup, choice); });
  if (terminal) fmt::print(stderr, "\r\033[K");
  answer.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  // Tables carry their warnings themselves.
  if (o.format == "csv" || o.format == "json") simulator::warn("plan", answer.warnings, o.quiet);
  simulator::deliver(written(o, {o.request, setup, answer, o.reproducible}), o.output);
  return answer.best ? 0 : 1;
}

void add_question(CLI::App& app, Options& o) {
  auto& r = o.request;
  app.add_option("--gpus", r.gpus, "numbers of GPUs: one, or several to compare")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--days", o.days, "budget: days of all GPUs");
  app.add_option("--usd", o.usd, "budget: dollars, such as 200K or 2e6");
  app.add_option("--flops", o.flops, "budget: training FLOPs, 6 a parameter and token, such as 1e24");
  app.add_option("--law", r.law, "scaling law: of --list laws, or a file of fit --save")->capture_default_str();
  app.add_option("--inference-tokens", o.inference_tokens, "tokens to serve, paid for from the same budget");
  app.add_option("--serving-mfu", r.serving_mfu, "MFU of serving, of the 16-bit peak")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 1.0));
  app.add_option("--unique-tokens", o.unique_tokens, "distinct training tokens that there are; more repeat them");
  app.add_option("--recipes,--recipe", r.recipes,
                 "numeric recipes to compare; default bf16,fp8,nvfp4 as far as the GPU has them")
      ->delimiter(',');
  app.add_option("--sizes", r.sizes, "1B..400B, or a list of sizes and models; default 40 around the optimum");
  app.add_option("--points", r.points, "sizes of a range")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}));
  app.add_option("--family", r.family, "family of dense models that sizes have the shape of")->capture_default_str();
  app.add_option("--model", r.model, "this model only: shipped name or path to a Hugging Face config.json");
}

void add_machine(CLI::App& app, Options& o) {
  auto& m = o.request.machine;
  app.add_option("--gpu", m.gpu, "shipped name, default h100-sxm");
  app.add_option("--cluster", m.cluster, "shipped name or file");
  app.add_option("--seq,--seq-length", m.seq, "tokens of a sequence; default 4096, or the models' longest")
      ->check(CLI::PositiveNumber);
  app.add_option("--gbs,--global-batch-size", m.global_batch, "sequences of a step; default 4 Mi tokens")
      ->check(CLI::PositiveNumber);
  app.add_option("--framework", m.framework, "framework whose memory and overheads are assumed")->capture_default_str();
  app.add_option("--price", m.price, "$ a GPU-hour")->check(CLI::Range(0.0, 1e6));
  app.add_option("--threads", o.threads, "threads of the search; the answer does not depend on it")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--format", o.format, "table, json, csv or markdown")
      ->check(CLI::IsMember({"table", "json", "csv", "markdown"}));
  app.add_option("--output", o.output, "file for the result");
  app.add_flag("--reproducible", o.reproducible, "leave out elapsed_s");
  app.add_flag("--quiet", o.quiet, "no warnings");
}

}  // namespace

std::function<int()> add_budget(CLI::App& budget) {
  const auto options = std::make_shared<Options>();
  add_question(budget, *options);
  add_machine(budget, *options);
  return [options, &budget] { return run_budget(budget, *options); };
}

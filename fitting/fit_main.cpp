#include "fitting/fit_main.h"

#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/cell.h"
#include "fitting/choose.h"
#include "fitting/fit_report.h"
#include "fitting/listing.h"
#include "fitting/plots/plot.h"
#include "fitting/runs/runs.h"
#include "fitting/solver/projection_fit.h"
#include "simulator/cli.h"
#include "simulator/report.h"
#include "simulator/version.h"

namespace {

struct Options {
  std::string law, formula, from, format = "table", output, save, list, resample = "cases";
  std::string plot_kind = "loss", method = "huber";
  std::vector<std::string> files, columns, fix, tie, free, compare, plots;
  std::string N, batch_tokens;
  double near_best = 0.25;  // %
  fitting::RunOptions runs;
  fitting::FitOptions fit;
  bool quiet = false, reproducible = false, near_best_given = false;
  int threads = 0;
};

double number_of(const std::string& text, const std::string& flag) {
  const auto cell = core::read_cell(text);
  if (cell.kind != core::Cell::Kind::number) throw core::InputError(fmt::format("{}: found \"{}\", expected a number", flag, core::printable(text)));
  return cell.value;
}

// "A=1,B=2" and "A=1 B=2" alike.
std::vector<std::pair<std::string, std::string>> pairs_of(const std::vector<std::string>& texts, const std::string& flag) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& text : texts) {
    for (std::size_t at = 0; at < text.size();) {
      const auto end = std::min(text.find(',', at), text.size());
      const auto item = text.substr(at, end - at);
      const auto equals = item.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == item.size()) {
        throw core::InputError(fmt::format("{}: found \"{}\", expected NAME=VALUE", flag, core::printable(item)));
      }
      pairs.emplace_back(item.substr(0, equals), item.substr(equals + 1));
      at = end + 1;
    }
  }
  return pairs;
}

std::vector<double> constants_of(const fitting::Law& law, const std::string& name, const std::string& flag) {
  const auto given = fitting::fitted_law(name);
  if (given.law.name == law.name) return given.parameters;
  throw core::InputError(fmt::format("{}: found constants of {}, expected of {}", flag, given.law.name, law.name));
}

// Parameters of --from that --free does not name are held.
void hold(Options& o, const fitting::Law& law) {
  for (const auto& [name, value] : pairs_of(o.fix, "--fix")) o.fit.fixed[name] = number_of(value, "--fix " + name);
  for (const auto& [name, other] : pairs_of(o.tie, "--tie")) o.fit.tied[name] = other;
  if (o.from.empty()) {
    if (!o.free.empty()) throw core::InputError("--free: found without --from, expected the constants that the others keep");
    return;
  }
  const auto given = constants_of(law, o.from, "--from");
  if (o.free.empty()) throw core::InputError("--from: found without --free, expected the parameters to fit");
  for (const auto& name : o.free) {
    const auto known = std::any_of(law.parameters.begin(), law.parameters.end(), [&](const auto& p) { return p.name == name; });
    if (!known) throw core::InputError(fmt::format("--free: found \"{}\", expected a parameter of {}", core::printable(name), law.name));
  }
  for (std::size_t j = 0; j < law.parameters.size(); ++j) {
    const auto& name = law.parameters[j].name;
    if (std::find(o.free.begin(), o.free.end(), name) == o.free.end()) o.fit.fixed.emplace(name, given[j]);
  }
}

std::string written(const Options& o, const fitting::FitAnswer& answer) {
  if (o.format == "json") return fitting::fit_json(answer);
  if (o.format == "csv") return fitting::fit_csv(answer);
  if (o.format == "markdown") return fitting::fit_markdown(answer);
  return fitting::fit_table(answer);
}

void save(const fitting::FitAnswer& answer, const Options& o) {
  auto law = answer.fit.law;
  law.source = fmt::format("fit of {} rows of {}", answer.fit.rows, fmt::join(o.files, ", "));
  constexpr std::size_t kept = 400;  // enough for intervals, small enough to read
  if (law.draws.size() > kept) law.draws.resize(kept);
  std::ofstream file(o.save);
  file << fitting::fitted_law_json(law);
  if (!file.flush()) throw core::InputError(fmt::format("{}: cannot be written", o.save));
}

void plot(const fitting::FitAnswer& answer, const fitting::Runs& runs, const Options& o) {
  std::vector<std::string> names;
  for (const auto& file : o.files) names.push_back(std::filesystem::path(file).filename().string());
  const fitting::LawPicture picture{answer.fit.law, runs.rows, runs.held_out, fmt::format("{} rows of {}", runs.rows.size(), fmt::join(names, ", ")),
                                    o.fit.confidence};
  const auto figure = fitting::law_figure(picture, fitting::plot_kind(o.plot_kind, "--plot-kind"), "--plot-kind");
  for (const auto& file : fitting::plot_files(o.plots, "--plot")) fitting::draw(figure, file, "--plot");
}

int run(Options& o) {
  const auto begin = std::chrono::steady_clock::now();
  fitting::plot_files(o.plots, "--plot");  // before the fit
  if (!o.N.empty()) o.runs.reading.N = number_of(o.N, "--N");
  if (!o.batch_tokens.empty()) o.runs.reading.tokens_per_step = number_of(o.batch_tokens, "--batch-tokens");
  o.runs.near_best = o.near_best / 100.0;
  o.runs.reading.columns = pairs_of(o.columns, "--columns");
  o.fit.resample = o.resample == "cases" ? fitting::Resample::cases : fitting::Resample::residuals;
  const std::vector<std::filesystem::path> files(o.files.begin(), o.files.end());
  fitting::FitAnswer answer;
  fitting::Law law;
  if (o.law == "auto") {
    auto chosen = fitting::choose(files, o.runs, o.fit);
    law = chosen.law;
    answer.compared = std::move(chosen.compared);
  } else {
    std::vector<std::string> symbols;
    for (const auto& [variable, column] : o.runs.reading.columns) symbols.push_back(variable);
    law = o.formula.empty() ? fitting::law_of(o.law) : fitting::law_of_formula(o.formula, symbols);
  }
  if (o.near_best_given && !law.setting) simulator::warn("fit", {fmt::format("--near-best: has no effect on {}", law.name)}, o.quiet);
  hold(o, law);
  for (const auto& name : o.compare) o.fit.compare.emplace_back(name, constants_of(law, name, "--compare"));
  if (!o.from.empty()) o.fit.compare.emplace_back(o.from, constants_of(law, o.from, "--from"));
  auto runs = fitting::read_runs(law, files, o.runs);
  o.fit.held_out = runs.held_out;
  o.fit.row_names = runs.observations.rows;
  answer.fit = o.method == "vp" ? fitting::fit_by_projection(law, runs.rows, o.fit) : fitting::fit(law, runs.rows, o.fit);
  for (auto* list : {&answer.fit.warnings, &answer.fit.law.warnings}) {
    list->insert(list->begin(), runs.observations.warnings.begin(), runs.observations.warnings.end());
  }
  answer.options = o.fit;
  answer.observations = std::move(runs.observations);
  answer.version = simulator::version();
  if (!o.reproducible) answer.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (o.format != "table" && o.format != "json") simulator::warn("fit", answer.fit.warnings, o.quiet);
  if (!o.plots.empty()) plot(answer, runs, o);
  simulator::deliver(written(o, answer), o.output);
  if (!o.save.empty()) save(answer, o);
  return answer.fit.converged ? 0 : 1;
}

void add_options(CLI::App& app, Options& o) {
  app.add_option("law", o.law, "a law of `fit --list`, or auto: the one that predicts held-out runs best");
  app.add_option("runs", o.files, "tables of runs, wandb or TensorBoard exports, logs of training runs");
  app.add_option("--formula", o.formula, "a law of your own in place of LAW, such as \"E + A / N^alpha\"; capitals are fitted as logarithms");
  app.add_option("--columns", o.columns, "columns of variables, such as N=params,D=tokens,L=loss");
  app.add_option("--where", o.runs.reading.where, "rows to use, such as \"dataset=c4\" or \"C>1e19\"")->allow_extra_args(false);
  app.add_option("--drop-highest", o.runs.drop_highest, "leave out so many runs of the highest loss")->check(CLI::NonNegativeNumber);
  app.add_option("--near-best", o.near_best, "of laws of learning rates and batches: runs within so many % of the least loss of their N and D make a row, their mean")
      ->check(CLI::Range(0.0, 100.0))->capture_default_str();
  app.add_option("--N", o.N, "parameters of runs whose files do not say it");
  app.add_option("--batch-tokens", o.batch_tokens, "tokens of a step of runs whose files do not say it");
  app.add_flag("--along", o.runs.reading.along, "points along each run instead of its end");
  app.add_flag("--keep-diverged", o.runs.reading.keep_diverged, "fit diverged runs too");
  app.add_flag("--keep-unfinished", o.runs.reading.keep_unfinished, "fit unfinished runs too");
  app.add_flag("--keep-duplicates", o.runs.reading.keep_duplicates, "fit runs that stand twice too");
  app.add_option("--fix", o.fix, "parameters to hold, such as alpha=0.34,E=1.69");
  app.add_option("--tie", o.tie, "parameters that equal another, such as beta=alpha");
  app.add_option("--from", o.from, "constants (of `fit --list constants`, or a saved law) that parameters keep, but those of --free");
  app.add_option("--free", o.free, "parameters that are fitted with --from")->delimiter(',');
  app.add_option("--holdout", o.runs.holdout, "runs to predict and not to fit, such as compute>1e21");
  app.add_option("--bootstrap", o.fit.bootstrap, "resamples for intervals, such as 4000")->check(CLI::Range(0, 10000000));
  app.add_option("--bootstrap-starts", o.fit.bootstrap_starts, "starts of each resample, besides the fit's minimum")->check(CLI::Range(0, 1000000));
  app.add_option("--resample", o.resample, "cases (rows) or residuals")->check(CLI::IsMember({"cases", "residuals"}))->capture_default_str();
  app.add_option("--seed", o.fit.seed, "of the resamples")->capture_default_str();
  app.add_option("--confidence", o.fit.confidence, "share of resamples in an interval")->check(CLI::Range(0.01, 0.999))->capture_default_str();
  app.add_option("--huber", o.fit.huber, "residual (of logarithms) from which a row pulls no harder; default the law's, mostly 0.001")->check(CLI::PositiveNumber);
  app.add_option("--method", o.method, "huber, or vp: least squares of chinchilla by variable projection")->check(CLI::IsMember({"huber", "vp"}))->capture_default_str();
  app.add_option("--compare", o.compare, "constants of `fit --list constants`, or saved laws: the objective at them too")->delimiter(',');
  app.add_option("--starts", o.fit.starts, "at most, of the law's grid")->check(CLI::Range(1, 100000000))->capture_default_str();
  app.add_option("--profile", o.fit.profile, "parameters to profile: the objective along each, the rest fitted again")->delimiter(',');
  app.add_option("--save", o.save, "file for the law, as `fit evaluate` and `plan budget --law` read it");
  app.add_option("--plot", o.plots, "pictures: files .png, .svg, .pdf, or .gp for gnuplot's script with its data")->allow_extra_args(false);
  app.add_option("--plot-kind", o.plot_kind, "loss (against compute), isoflop (against size), contour (over compute and size) or residuals")
      ->check(CLI::IsMember({"loss", "isoflop", "contour", "residuals"}))->capture_default_str();
  app.add_option("--format", o.format, "table, json, csv or markdown")->check(CLI::IsMember({"table", "json", "csv", "markdown"}))->capture_default_str();
  app.add_option("--output", o.output, "file for the result");
  app.add_option("--threads", o.threads, "threads; default all cores")->check(CLI::Range(1, 1024));
  app.add_flag("--quiet", o.quiet, "no warnings");
  app.add_flag("--reproducible", o.reproducible, "leave out elapsed_s");
  app.add_option("--list", o.list, "laws (forms) or constants (sets that evaluate and optimum take)")
      ->expected(0, 1)->default_str("laws")->check(CLI::IsMember({"laws", "constants"}));
}

}  // namespace

int fit_main(int argc, char** argv) {
  Options o;
  CLI::App app("Fits scaling laws to runs. Also: fit evaluate LAW --N 70e9 --D 1.4e12, fit optimum LAW --flops 5.76e23, fit gaps (what few bits cost)", "fit");
  app.set_version_flag("--version", std::string(simulator::version()));
  add_options(app, o);
  if (const auto status = simulator::parse<CLI::ExtrasError, CLI::ParseError>(app, argc, argv)) return *status;
  if (app.count("--list") > 0) return simulator::deliver(fitting::listing(o.list.empty() ? "laws" : o.list), o.output), 0;
  if (!o.formula.empty() && !o.law.empty()) {
    o.files.insert(o.files.begin(), o.law);  // the first word is a file then
    o.law.clear();
  }
  if (o.law.empty() && o.formula.empty()) throw core::InputError("LAW: missing, expected a name of `fit --list`, auto, or --formula");
  if (o.files.empty()) throw core::InputError("RUNS: missing, expected a table or log of runs");
  o.near_best_given = app.count("--near-best") > 0;
  if (app.count("--plot-kind") > 0 && o.plots.empty()) simulator::warn("fit", {"--plot-kind: has no effect without --plot"}, o.quiet);
  if (o.method == "vp") {
    for (const auto* flag : {"--starts", "--bootstrap-starts"}) {
      if (app.count(flag) > 0) simulator::warn("fit", {fmt::format("{}: has no effect with --method vp", flag)}, o.quiet);
    }
  }
  const oneapi::tbb::global_control threads(oneapi::tbb::global_control::max_allowed_parallelism,
                                            o.threads > 0 ? static_cast<std::size_t>(o.threads) : static_cast<std::size_t>(oneapi::tbb::this_task_arena::max_concurrency()));
  return run(o);
}

#include "fitting/best_sizes_main.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/cell.h"
#include "fitting/best_sizes/best_sizes_report.h"
#include "fitting/best_sizes/loss_curves.h"
#include "fitting/plots/plot_best_sizes.h"
#include "simulator/cli.h"
#include "simulator/report.h"
#include "simulator/version.h"

namespace {

constexpr std::string_view by_isoflop = "chinchilla-isoflop", by_envelope = "chinchilla-envelope";

struct Options {
  std::string law, format = "table", output, N, batch_tokens, plot_kind;
  std::vector<std::string> files, columns, plots;
  std::vector<std::filesystem::path> paths, pictures;
  core::ObservationOptions reading;
  fitting::IsoflopOptions isoflop;
  fitting::EnvelopeOptions envelope;
  std::int64_t bootstrap = 1000, seed = 1;
  double near = 0.0, confidence = 0.95;
  std::string through = "parabola";
  bool weighted = false, quiet = false, reproducible = false;
};

double number_of(const std::string& text, const std::string& flag) {
  const auto cell = core::read_cell(text);
  if (cell.kind != core::Cell::Kind::number) throw core::InputError(fmt::format("{}: found \"{}\", expected a number", flag, core::printable(text)));
  return cell.value;
}

std::string source_of(const Options& o, std::size_t count, const char* what) {
  std::vector<std::string> names;
  for (const auto& file : o.paths) names.push_back(file.filename().string());
  return fmt::format("{} {} of {}", count, what, fmt::join(names, ", "));
}

void draw(const Options& o, const fitting::Figure& figure) {
  for (const auto& file : o.pictures) fitting::draw(figure, file, "--plot");
}

fitting::BestSizesAnswer isoflop(const Options& o) {
  auto read = fitting::read_compute_runs(o.paths, o.reading);
  const auto fit = fitting::fit_isoflop(read.runs, o.isoflop);
  const auto source = source_of(o, read.runs.size(), "rows");
  draw(o, o.plot_kind == "optimum" ? fitting::best_size_figure(fit.sizes, source) : fitting::isoflop_fit_figure(read.runs, fit, source));
  return {fit.sizes, std::move(read.observations), o.seed, o.confidence, {}, {}};
}

fitting::BestSizesAnswer envelope(const Options& o) {
  auto read = fitting::read_loss_curves(o.paths, o.reading);
  const auto fit = fitting::fit_envelope(read.curves, o.envelope);
  const auto source = source_of(o, read.curves.size(), "runs");
  draw(o, o.plot_kind == "optimum" ? fitting::best_size_figure(fit.sizes, source) : fitting::envelope_figure(read.curves, fit, source));
  return {fit.sizes, std::move(read.observations), o.seed, o.confidence, {}, {}};
}

std::string written(const Options& o, const fitting::BestSizesAnswer& answer) {
  if (o.format == "json") return fitting::best_sizes_json(answer);
  if (o.format == "csv") return fitting::best_sizes_csv(answer);
  if (o.format == "markdown") return fitting::best_sizes_markdown(answer);
  return fitting::best_sizes_table(answer);
}

// "N=params,L=loss": of the columns.
std::vector<std::pair<std::string, std::string>> pairs_of(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& text : texts) {
    for (const auto& item : CLI::detail::split(text, ',')) {
      const auto equals = item.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == item.size()) {
        throw core::InputError(fmt::format("--columns: found \"{}\", expected VARIABLE=COLUMN", core::printable(item)));
      }
      pairs.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    }
  }
  return pairs;
}

void add_options(CLI::App& app, Options& o) {
  app.add_option("law", o.law, "chinchilla-isoflop (approach 2) or chinchilla-envelope (approach 1)")->required();
  app.add_option("runs", o.files, "tables of runs with their FLOPs; for the envelope, of losses along training")->required();
  app.add_option("--columns", o.columns, "columns of variables, such as N=params,D=tokens,C=flops,L=loss");
  app.add_option("--where", o.reading.where, "rows to use, such as \"dataset=c4\" or \"C>1e19\"")->allow_extra_args(false);
  app.add_option("--N", o.N, "parameters of runs whose files do not say it");
  app.add_option("--batch-tokens", o.batch_tokens, "tokens of a step of runs whose files do not say it");
  app.add_flag("--keep-diverged", o.reading.keep_diverged, "fit diverged runs too");
  app.add_flag("--keep-unfinished", o.reading.keep_unfinished, "fit unfinished runs too");
  app.add_flag("--keep-duplicates", o.reading.keep_duplicates, "fit runs that stand twice too");
  app.add_option("--bootstrap", o.bootstrap, "resamples for intervals")->check(CLI::Range(0, 10000000))->capture_default_str();
  app.add_option("--seed", o.seed, "of the resamples")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--confidence", o.confidence, "share of resamples in an interval")->check(CLI::Range(0.01, 0.999))->capture_default_str();
  app.add_option("--plot", o.plots, "pictures: files .png, .svg, .pdf, or .gp for gnuplot's script with its data")->allow_extra_args(false);
  app.add_option("--format", o.format, "table, json, csv or markdown")->check(CLI::IsMember({"table", "json", "csv", "markdown"}))->capture_default_str();
  app.add_option("--output", o.output, "file for the result");
  app.add_flag("--quiet", o.quiet, "no warnings");
  app.add_flag("--reproducible", o.reproducible, "leave out elapsed_s");
}

// Of one of the two approaches; elsewhere they have no effect.
const std::vector<std::string> of_isoflop = {"--within", "--near", "--weighted", "--through", "--keep-diverged", "--keep-unfinished", "--keep-duplicates"},
                               of_envelope = {"--computes", "--last", "--smooth"};

void add_own_options(CLI::App& app, Options& o) {
  app.add_option("--within", o.isoflop.within, "isoflop: share by which FLOPs of one budget may differ")->check(CLI::Range(0.0, 1.0))->capture_default_str();
  app.add_option("--near", o.near, "isoflop: use only runs within this factor of the best size of their budget, such as 10")->check(CLI::Range(1.0, 1e9));
  app.add_option("--through", o.through, "isoflop: a parabola, or akima, a curve through each run (Porian et al. 2024)")
      ->check(CLI::IsMember({"parabola", "akima"}))->capture_default_str();
  app.add_flag("--weighted", o.weighted, "isoflop: weigh budgets by the inverse variance of their ln N*");
  app.add_option("--computes", o.envelope.computes, "envelope: so many computes, evenly in their logarithm")->check(CLI::Range(10, 1000000))->capture_default_str();
  app.add_option("--last", o.envelope.last, "envelope: share of each run, from its end, that is used, such as 0.15")->check(CLI::Range(0.001, 1.0))->capture_default_str();
  app.add_option("--smooth", o.envelope.smooth, "envelope: points of a run whose mean stands for the middle one")->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--plot-kind", o.plot_kind, "isoflop (of chinchilla-isoflop), loss (of chinchilla-envelope), or optimum: the best size over compute")
      ->check(CLI::IsMember({"isoflop", "loss", "optimum"}));
}

std::vector<std::string> without_effect(const CLI::App& app, const Options& o) {
  std::vector<std::string> warnings;
  for (const auto& flag : o.law == by_isoflop ? of_envelope : of_isoflop) {
    if (app.count(flag) > 0) warnings.push_back(fmt::format("{}: has no effect on {}", flag, o.law));
  }
  if (!o.plot_kind.empty() && o.plots.empty()) warnings.push_back("--plot-kind: has no effect without --plot");
  return warnings;
}

void check(Options& o) {
  if (o.law != by_isoflop && o.law != by_envelope) throw core::InputError(fmt::format("LAW: found \"{}\", expected {} or {}", core::printable(o.law), by_isoflop, by_envelope));
  const std::string other = o.law == by_isoflop ? "loss" : "isoflop";
  if (o.plot_kind == other) throw core::InputError(fmt::format("--plot-kind: found {}, expected {} or optimum for {}", other, o.law == by_isoflop ? "isoflop" : "loss", o.law));
  if (!o.N.empty()) o.reading.N = number_of(o.N, "--N");
  if (!o.batch_tokens.empty()) o.reading.tokens_per_step = number_of(o.batch_tokens, "--batch-tokens");
  o.reading.columns = pairs_of(o.columns);
  o.paths.assign(o.files.begin(), o.files.end());
  o.pictures = fitting::plot_files(o.plots, "--plot");
  if (o.near > 0.0) o.isoflop.near = o.near;
  if (o.through == "akima") o.isoflop.through = fitting::Through::akima;
  if (o.weighted) o.isoflop.weights = fitting::Weights::by_spread;
  o.isoflop.bootstrap = o.envelope.bootstrap = o.bootstrap;
  o.isoflop.seed = o.envelope.seed = static_cast<std::uint64_t>(o.seed);
  o.isoflop.confidence = o.envelope.confidence = o.confidence;
}

}  // namespace

bool asks_for_best_sizes(int argc, char** argv) {
  return std::any_of(argv + std::min(argc, 1), argv + argc, [](const char* word) { return word == by_isoflop || word == by_envelope; });
}

int best_sizes_main(int argc, char** argv) {
  const auto begin = std::chrono::steady_clock::now();
  Options o;
  CLI::App app("Fits how the best size and number of tokens grow with compute, by approaches 1 and 2 of Hoffmann et al. 2022", "fit");
  app.set_version_flag("--version", std::string(simulator::version()));
  add_options(app, o);
  add_own_options(app, o);
  if (const auto status = simulator::parse<CLI::ExtrasError, CLI::ParseError>(app, argc, argv)) return *status;
  check(o);
  auto answer = o.law == by_isoflop ? isoflop(o) : envelope(o);
  const auto ineffective = without_effect(app, o);
  auto& warnings = answer.sizes.warnings;
  const auto& of_rows = answer.observations.warnings;
  warnings.insert(warnings.begin(), of_rows.begin(), of_rows.end());
  warnings.insert(warnings.end(), ineffective.begin(), ineffective.end());
  answer.version = simulator::version();
  if (!o.reproducible) answer.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (o.format != "table" && o.format != "json") simulator::warn("fit", warnings, o.quiet);
  simulator::deliver(written(o, answer), o.output);
  return 0;
}

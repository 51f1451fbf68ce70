// simulate check: predictions held against measured runs.
#include "simulator/check_main.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "core/io/gnuplot.h"
#include "simulator/check/baseline.h"
#include "simulator/check/bounds.h"
#include "simulator/check/input.h"
#include "simulator/check/plot.h"
#include "simulator/check/report.h"
#include "simulator/cli.h"
#include "simulator/report.h"

namespace {

struct Options {
  std::vector<std::string> files;
  core::MegatronMachine machine;
  std::string format = "table", output, max_error, max_row_error, max_memory_error, baseline,
              reason, time_tolerance, memory_tolerance, summary_tolerance, plot;
  bool update = false, quiet = false, reproducible = false;
};

std::optional<double> share(const std::string& text, const std::string& flag) {
  return text.empty() ? std::nullopt : std::optional(simulator::parse_share(text, flag));
}

void check_together(const Options& options) {
  if (options.update && options.baseline.empty())
    throw core::InputError("--update: --baseline names no file to write");
  if (options.update && options.reason.empty())
    throw core::InputError("--update: --reason is missing, expected why the baseline changes");
  if (!options.update && !options.reason.empty())
    throw core::InputError("--reason: does nothing without --update");
  const bool tolerances = !options.time_tolerance.empty() || !options.memory_tolerance.empty() ||
                          !options.summary_tolerance.empty();
  if (tolerances && options.baseline.empty())
    throw core::InputError(
        "--time-tolerance, --memory-tolerance, --summary-tolerance: do nothing without --baseline");
}

simulator::Tolerances tolerances_of(const Options& options, simulator::Tolerances otherwise) {
  return {share(options.time_tolerance, "--time-tolerance").value_or(otherwise.time),
          share(options.memory_tolerance, "--memory-tolerance").value_or(otherwise.memory),
          share(options.summary_tolerance, "--summary-tolerance").value_or(otherwise.summary)};
}

void hold_to_baseline(const Options& options, simulator::CheckReport& report) {
  if (options.update) {
    const auto baseline =
        simulator::baseline_of(report.rows, options.reason, tolerances_of(options, {}));
    simulator::deliver(simulator::to_json(baseline), options.baseline);
    return;
  }
  const auto baseline = simulator::read_baseline(options.baseline);
  auto comparison =
      simulator::compare_with(baseline, report.rows, tolerances_of(options, baseline.tolerances));
  report.failures.insert(
      report.failures.end(), comparison.failures.begin(), comparison.failures.end());
  report.remarks.insert(report.remarks.end(), comparison.remarks.begin(), comparison.remarks.end());
}

std::string text_of(const simulator::CheckReport& report, const std::string& format) {
  if (format == "json") return simulator::check_json(report);
  if (format == "csv") return simulator::check_csv(report);
  if (format == "markdown") return simulator::check_markdown(report);
  if (format == "junit") return simulator::check_junit(report);
  return simulator::check_table(report);
}

int run(const Options& options) {
  check_together(options);
  const simulator::Bounds bounds{share(options.max_error, "--max-error"),
                                 share(options.max_row_error, "--max-row-error"),
                                 share(options.max_memory_error, "--max-memory-error")};
  if (!options.plot.empty()) core::gnuplot_terminal(options.plot, "--plot");  // before all rows are run
  const auto start = std::chrono::steady_clock::now();
  std::vector<core::MeasuredTable> tables;
  for (const auto& file : options.files)
    tables.push_back(simulator::read_measured_input(file, options.machine));
  simulator::CheckReport report;
  report.rows = simulator::check_rows(tables);
  report.groups = simulator::plan_groups(report.rows);
  report.failures = simulator::over(bounds, report.rows);
  std::size_t read = 0;
  for (const auto& table : tables) read += table.runs.size();
  if (read > report.rows.size()) {
    report.remarks.push_back(fmt::format(
        "{} rows whose ids stand in an earlier table were left out", read - report.rows.size()));
  }
  const auto coarse =
      std::count_if(report.rows.begin(), report.rows.end(), [](const simulator::CheckedRow& row) {
        return row.predicted && row.predicted->grain == core::Grain::cell;
      });
  if (coarse > 0)
    report.remarks.push_back(
        fmt::format("{} rows with very many cells were simulated at cell grain", coarse));
  if (!options.baseline.empty()) hold_to_baseline(options, report);
  if (!options.plot.empty()) simulator::plot_check(report.rows, options.plot);
  if (!options.reproducible)
    report.elapsed_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  simulator::deliver(text_of(report, options.format), options.output);
  if (!options.quiet) {
    for (const auto& failure : report.failures)
      fmt::print(stderr, "simulate: check: {}\n", failure);
  }
  return report.failures.empty() ? 0 : 1;
}

}  // namespace

int check_main(int argc, char** argv) {
  Options options;
  CLI::App app{"Predicts measured training runs and says how far off the predictions are.",
               "simulate check"};
  app.add_option("files",
                 options.files,
                 "tables of measured runs (CSV), logs or golden values of Megatron-LM")
      ->required();
  app.add_option("--gpu", options.machine.gpu, "GPU of the logs, which do not name it");
  app.add_option("--gpus", options.machine.gpus, "GPUs of a run whose log does not say")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--gpus-per-node",
                 options.machine.gpus_per_node,
                 "GPUs of a server of the logs; default its usual one")
      ->check(CLI::Range(1, 1024));
  app.add_option(
      "--max-error", options.max_error, "largest median step time error of a source, such as 10%");
  app.add_option("--max-row-error", options.max_row_error, "largest step time error of a row");
  app.add_option(
      "--max-memory-error", options.max_memory_error, "largest median memory error of a source");
  app.add_option(
      "--baseline", options.baseline, "errors of an earlier check that these are held to");
  app.add_flag("--update", options.update, "write the baseline");
  app.add_option("--reason", options.reason, "why the baseline changes; kept in it");
  app.add_option("--time-tolerance",
                 options.time_tolerance,
                 "how much worse a step time error may get; default the baseline's");
  app.add_option("--memory-tolerance",
                 options.memory_tolerance,
                 "how much worse a memory error may get; default the baseline's");
  app.add_option("--summary-tolerance",
                 options.summary_tolerance,
                 "how much worse a source's median and mean may get; default the baseline's");
  app.add_option("--format", options.format, "table, json, csv, markdown or junit")
      ->check(CLI::IsMember({"table", "json", "csv", "markdown", "junit"}));
  app.add_option("--plot",
                 options.plot,
                 "draw predicted against measured step times: a file .svg, .png, .pdf, or .gp for gnuplot's script");
  app.add_option("--output", options.output, "file for the result");
  app.add_flag("--reproducible", options.reproducible, "leave out how long it took");
  app.add_flag("--quiet", options.quiet, "failures in the report alone");
  if (const auto status = simulator::parse<CLI::ExtrasError, CLI::ParseError>(app, argc, argv)) return *status;
  return run(options);
}

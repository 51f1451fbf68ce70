// simulate calibrate: curves fitted to measured kernels and collectives, and the few constants of systems
// fitted to measured training runs.
#include "planner/calibrate_main.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "planner/calibrate/calibrate_kernels.h"
#include "planner/calibrate/report.h"
#include "planner/calibrate/sensitivity.h"
#include "planner/calibrate/write.h"
#include "planner/intervals_main.h"
#include "planner/parallel.h"
#include "simulator/check/input.h"
#include "simulator/cli.h"
#include "simulator/report.h"

namespace {

struct Options {
  std::vector<std::string> files;
  std::string parameters, from, leave_out, format = "table", output;
  int threads = 0;
  bool leave_one_out = false, write = false, sensitivity = false, quiet = false, intervals = false;

  // What is written says how well it holds on sources that it was not fitted to.
  planner::LeaveOneOut leaves() const {
    return leave_one_out || write ? planner::LeaveOneOut::yes : planner::LeaveOneOut::no;
  }
};

std::filesystem::path specification(const Options& options, const char* shipped) {
  if (!options.parameters.empty()) return options.parameters;
  return core::data_dir() / "calibration" / shipped;
}

bool converged(const planner::Calibration& fit, const std::string& name, const Options& options) {
  if (!fit.converged && !options.quiet)
    fmt::print(stderr, "simulate: calibrate: {} did not converge: {}\n", name, fit.message);
  return fit.converged;
}

void write(const planner::DataTexts& texts, const Options& options) {
  planner::write_data(texts.changed(), core::data_dir());
  for (const auto& text : texts.changed()) {
    if (!options.quiet) fmt::print(stderr, "simulate: calibrate: wrote {}\n", text.file);
  }
}

// What a change of a tenth does: more than a figure's source leaves open, less than what would make kernels choose otherwise.
constexpr double sensitivity_factor = 1.1;

// Of all figures that either stage of calibration declares.
int show_sensitivity(const Options& options) {
  if (options.files.empty()) throw core::InputError("--sensitivity: expected tables of measured runs");
  if (options.write || options.leave_one_out || !options.from.empty() || !options.leave_out.empty())
    throw core::InputError("--sensitivity: fits nothing, so without --write, --leave-one-out, --leave-out and --from");
  std::vector<planner::CalibrationSpec> specs = {
      planner::read_calibration(specification(options, "parameters.json"))};
  for (auto& fit : planner::read_kernel_fits(core::data_dir() / "calibration" / "kernels.json"))
    specs.push_back(std::move(fit.spec));
  std::vector<core::MeasuredTable> tables;
  for (const auto& file : options.files) tables.push_back(simulator::read_measured_input(file, {}));
  const auto rows = planner::calibration_rows(tables, specs.front());
  if (rows.rows.empty()) throw core::InputError("--sensitivity: no row of the tables can be predicted");
  std::vector<planner::Sensitivity> found;
  planner::on_threads(options.threads, [&] {
    found = planner::sensitivities(planner::declared_figures(specs), rows, sensitivity_factor);
  });
  simulator::deliver(
      options.format == "json"
          ? planner::sensitivities_json(found, rows.rows.size(), sensitivity_factor)
          : planner::sensitivities_table(found, rows.rows.size(), sensitivity_factor),
      options.output);
  return 0;
}

int fit_runs(const Options& options) {
  if (!options.from.empty())
    throw core::InputError("--from: names tables of kernels, and is not for tables of runs");
  const auto spec = planner::read_calibration(specification(options, "parameters.json"));
  std::vector<core::MeasuredTable> tables;
  std::string command = "simulate calibrate";
  for (const auto& file : options.files) {
    tables.push_back(simulator::read_measured_input(file, {}));
    // Without folders: it goes into data files.
    command += " " + std::filesystem::path(file).filename().string();
  }
  const auto rows = planner::calibration_rows(tables, spec, options.leave_out);
  const auto result = planner::calibrate(spec, rows, options.leaves(), options.threads);
  simulator::deliver(options.format == "json" ? planner::calibration_json(result)
                                              : planner::calibration_table(result),
                     options.output);
  if (!converged(result, "the fit", options)) return 1;
  planner::DataTexts texts(core::data_dir());
  texts.put(result, command);
  if (options.write) write(texts, options);
  return 0;
}

int fit_kernels(const Options& options) {
  const auto fits = planner::read_kernel_fits(specification(options, "kernels.json"));
  const auto from =
      options.from.empty() ? core::data_dir() / "measured" : std::filesystem::path(options.from);
  std::vector<planner::KernelCalibration> results;
  planner::on_threads(options.threads, [&] {
    results = planner::calibrate_kernels(fits, from, options.leave_out, options.leaves());
  });
  simulator::deliver(options.format == "json" ? planner::kernels_json(results)
                                              : planner::kernels_table(results),
                     options.output);
  planner::DataTexts texts(core::data_dir());
  for (const auto& result : results) {
    if (!converged(result.calibration, result.name, options)) return 1;
    texts.put(result.calibration,
              fmt::format("simulate calibrate ({}: {})", result.name, fmt::join(result.tables, " ")));
  }
  if (options.write) write(texts, options);
  return 0;
}

}  // namespace

int calibrate_main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Fits constants of data/: without tables, the curves of data/curves to measured kernels and "
      "collectives; with tables of training runs, the constants of systems to their step times.",
      "simulate calibrate"};
  app.add_option("files", options.files, "tables of measured runs (CSV); none: kernels");
  app.add_option("--from", options.from, "folder of tables of kernels; default data/measured");
  app.add_option("--leave-out",
                 options.leave_out,
                 "source whose rows are judged by the fit, not in it");
  app.add_option("--parameters",
                 options.parameters,
                 "what is fitted; default parameters.json or, of kernels, kernels.json of data/calibration");
  app.add_flag("--leave-one-out",
               options.leave_one_out,
               "also fit without each source, and judge it by that fit");
  app.add_flag("--write",
               options.write,
               "write the fitted values into the data files (implies --leave-one-out)");
  app.add_flag("--intervals",
               options.intervals,
               "instead of fitting: how far runs lie from their predictions now; with --write into data/uncertainty.json");
  app.add_flag("--sensitivity",
               options.sensitivity,
               "fit nothing; say how far the runs' step times follow a tenth more of each declared figure");
  app.add_option("--threads", options.threads, "default: all cores")->check(CLI::Range(1, 1024));
  app.add_option("--format", options.format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  app.add_option("--output", options.output, "file for the result");
  app.add_flag("--quiet", options.quiet, "nothing on standard error");
  if (const auto status = simulator::parse<CLI::ExtrasError, CLI::ParseError>(app, argc, argv)) return *status;
  if (options.intervals) {
    if (options.files.empty()) throw core::InputError("--intervals: expected tables of measured runs");
    return intervals_main({options.files, options.format, options.output, options.write, options.quiet});
  }
  if (options.sensitivity) return show_sensitivity(options);
  return options.files.empty() ? fit_kernels(options) : fit_runs(options);
}

// simulate calibrate: the few constants of systems, fitted to measured training runs.
#include "planner/calibrate_main.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "planner/calibrate/report.h"
#include "planner/calibrate/write.h"
#include "planner/intervals_main.h"
#include "simulator/check/input.h"
#include "simulator/cli.h"
#include "simulator/report.h"

namespace {

struct Options {
  std::vector<std::string> files;
  std::string parameters, format = "table", output;
  int threads = 0;
  bool leave_one_out = false, write = false, quiet = false, intervals = false;
};

int run(const Options& options) {
  if (options.intervals)
    return intervals_main({options.files, options.format, options.output, options.write, options.quiet});
  const auto& data = core::data_dir();
  const auto spec = planner::read_calibration(options.parameters.empty()
                                                  ? data / "calibration" / "parameters.json"
                                                  : std::filesystem::path(options.parameters));
  std::vector<core::MeasuredTable> tables;
  std::vector<std::string> names;  // without folders: they go into data files
  for (const auto& file : options.files) {
    tables.push_back(simulator::read_measured_input(file, {}));
    names.push_back(std::filesystem::path(file).filename().string());
  }
  const auto rows = planner::calibration_rows(tables, spec);
  // What is written says how well it holds on sources that it was not fitted to.
  const bool leave = options.leave_one_out || options.write;
  const auto result = planner::calibrate(
      spec, rows, leave ? planner::LeaveOneOut::yes : planner::LeaveOneOut::no, options.threads);
  simulator::deliver(options.format == "json" ? planner::calibration_json(result)
                                              : planner::calibration_table(result),
                     options.output);
  if (!result.converged) {
    if (!options.quiet)
      fmt::print(stderr, "simulate: calibrate: did not converge: {}\n", result.message);
    return 1;
  }
  if (options.write) {
    const auto texts = planner::written(result, data, names);
    planner::write_data(texts, data);
    for (const auto& text : texts) {
      if (!options.quiet) fmt::print(stderr, "simulate: calibrate: wrote {}\n", text.file);
    }
  }
  return 0;
}

}  // namespace

int calibrate_main(int argc, char** argv) {
  Options options;
  CLI::App app{"Fits constants of data/ to the step times of measured training runs.",
               "simulate calibrate"};
  app.add_option("files", options.files, "tables of measured runs (CSV)")->required();
  app.add_option("--parameters",
                 options.parameters,
                 "what is fitted; default data/calibration/parameters.json");
  app.add_flag("--leave-one-out",
               options.leave_one_out,
               "also fit without each source, and judge it by that fit");
  app.add_flag("--write",
               options.write,
               "write the fitted values into the data files (implies --leave-one-out)");
  app.add_flag("--intervals",
               options.intervals,
               "instead of fitting: how far runs lie from their predictions now; with --write into data/uncertainty.json");
  app.add_option("--threads", options.threads, "default: all cores")->check(CLI::Range(1, 1024));
  app.add_option("--format", options.format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  app.add_option("--output", options.output, "file for the result");
  app.add_flag("--quiet", options.quiet, "nothing on standard error");
  if (const auto status = simulator::parse<CLI::ExtrasError, CLI::ParseError>(app, argc, argv)) return *status;
  return run(options);
}

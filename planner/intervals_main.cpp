// simulate calibrate --intervals: data/uncertainty.json from the residuals of measured runs.
#include "planner/intervals_main.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "core/io/data_dir.h"
#include "planner/calibrate/intervals.h"
#include "simulator/check/input.h"
#include "simulator/report.h"

int intervals_main(const IntervalOptions& options) {
  const auto& data = core::data_dir();
  const auto spec = planner::read_calibration(data / "calibration" / "parameters.json");
  const auto rules = planner::read_interval_rules(data / "calibration" / "intervals.json");
  std::vector<core::MeasuredTable> tables;
  std::vector<std::string> names;  // without folders: they go into the data file
  for (const auto& file : options.files) {
    tables.push_back(simulator::read_measured_input(file, {}));
    names.push_back(std::filesystem::path(file).filename().string());
  }
  const auto rows = planner::residual_rows(planner::calibration_rows(tables, spec), rules);
  planner::IntervalReport report;
  report.intervals = planner::intervals_of(rows, rules, spec);
  report.intervals.command = fmt::format("simulate calibrate --intervals {}: {} rows of {} sources", fmt::join(names, " "),
                                         rows.size(), report.intervals.classes.front().sources);
  report.by_source = planner::coverage_left_out(rows, rules, spec, planner::LeftOut::source);
  report.by_architecture = planner::coverage_left_out(rows, rules, spec, planner::LeftOut::architecture);
  simulator::deliver(options.format == "json" ? planner::intervals_json(report) : planner::intervals_table(report),
                     options.output);
  if (!options.write) return 0;
  simulator::deliver(simulator::to_json(report.intervals), (data / "uncertainty.json").string());
  if (!options.quiet) fmt::print(stderr, "simulate: calibrate: wrote uncertainty.json\n");
  return 0;
}

// What `plan` and `simulate` share of --calibrate-with: runs, the fit of the planner, the database of the profiler.
#include "planner/calibrate_with_main.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "planner/calibrate/own_runs.h"
#include "profiler/calibrations.h"
#include "profiler/database.h"
#include "simulator/cli.h"
#include "simulator/uncertainty.h"
#include "simulator/version.h"

namespace {

constexpr std::string_view stored = "stored";

profiler::SystemKey key_of(const simulator::Request& request) { return {request.gpu, request.framework, request.cluster}; }

profiler::KeptCalibration to_keep(const simulator::Request& request, const simulator::SystemCalibration& c) {
  profiler::KeptCalibration out{key_of(request), std::string(simulator::version()), c.kernels, c.communication, c.host, {}};
  for (const auto& run : c.runs)
    out.runs.push_back(
        {run.name, run.gpu, run.runs.software, run.runs.experts, run.runs.own_curves, run.measured_s, run.predicted_s});
  return out;
}

simulator::SystemCalibration from_kept(const profiler::KeptCalibration& kept) {
  simulator::SystemCalibration c{kept.kernels, kept.communication, kept.host, {}};
  for (const auto& run : kept.runs)
    c.runs.push_back({run.name, run.gpu, {run.experts, run.software, run.own_curves}, run.measured_s, run.predicted_s});
  return c;
}

simulator::SystemCalibration stored_for(const simulator::Request& request) {
  const auto file = profiler::database_file();
  if (const auto kept = profiler::kept(key_of(request), file)) return from_kept(*kept);
  std::vector<std::string> systems;
  for (const auto& other : profiler::all_kept(file)) systems.push_back(other.key.text());
  throw core::InputError(fmt::format("--calibrate-with stored: nothing is kept for {} in {}; {}", key_of(request).text(),
                                     file.string(),
                                     systems.empty() ? "give a run first" : fmt::format("kept: {}", fmt::join(systems, ", "))));
}

// A database that cannot be written is no reason to refuse an answer.
void keep(const std::string& program, const simulator::Request& request, const simulator::SystemCalibration& c, bool quiet) {
  try {
    const auto file = profiler::database_file();
    profiler::keep(to_keep(request, c), file);
    if (!quiet)
      fmt::print(stderr, "{}: kept for {} in {}; --calibrate-with stored uses it again\n", program, key_of(request).text(),
                 file.string());
  } catch (const core::InputError& error) {
    simulator::warn(program, {fmt::format("the calibration was not kept: {}", error.what())}, quiet);
  }
}

simulator::SystemCalibration calibration_by(const std::vector<std::string>& arguments, const simulator::Setting& setting) {
  core::MegatronMachine machine;
  machine.gpu = setting.cluster.gpu.name;
  machine.gpus_per_node = setting.cluster.node.gpus;
  std::vector<planner::OwnRun> runs;
  for (const auto& argument : arguments) {
    if (argument == stored) throw core::InputError("--calibrate-with stored: stands alone, expected no other runs beside it");
    runs.push_back(planner::read_own_run(argument, machine));
  }
  return planner::calibrate_to(runs, planner::read_own_run_rules(core::data_dir() / "calibration" / "own_runs.json"));
}

// Plans may shard states, which takes other software: a run is comparable where it is to either.
std::vector<std::string> warnings_of(const simulator::SystemCalibration& c, const simulator::Setting& setting) {
  const auto& software = simulator::uncertainty().software;
  const auto curves = simulator::Curves::load(setting.cluster.gpu);
  core::ParallelPlan whole, sharded;
  sharded.zero = 3, sharded.dp = 2;
  std::vector<std::string> out;
  for (const auto& run : c.runs) {
    const auto& gpu = setting.cluster.gpu.name;
    const auto difference = simulator::difference_text(run, class_of(setting, whole, curves, software), gpu);
    if (difference.empty() || simulator::difference_text(run, class_of(setting, sharded, curves, software), gpu).empty())
      continue;
    out.push_back(fmt::format("--calibrate-with {}: {}: its factor may not be this system's", run.name, difference));
  }
  return out;
}

}  // namespace

void add_calibrate_with(CLI::App& app, std::vector<std::string>& arguments) {
  app.add_option(
         "--calibrate-with", arguments,
         "a measured run of the same system: a log of Megatron-LM, TABLE.csv:ID or an id of data/measured/runs.csv; may be "
         "given again; \"stored\" uses what earlier runs told")
      ->allow_extra_args(false);
}

void calibrate_with(const std::string& program,
                    const std::vector<std::string>& arguments,
                    const simulator::Request& request,
                    simulator::Setting& setting,
                    bool quiet) {
  if (arguments.empty()) return;
  const bool from_database = arguments.size() == 1 && arguments.front() == stored;
  const auto calibration = from_database ? stored_for(request) : calibration_by(arguments, setting);
  if (!from_database) keep(program, request, calibration, quiet);
  simulator::warn(program, warnings_of(calibration, setting), quiet);
  simulator::calibrate(setting, calibration);
}

std::string calibrations_listing() {
  std::string out;
  for (const auto& c : profiler::all_kept(profiler::database_file())) {
    std::vector<std::string> names;
    for (const auto& run : c.runs) names.push_back(run.name);
    out += fmt::format("{}: kernels x {:.3f}, communication x {:.3f}, host x {:.3f}, by {}\n", c.key.text(), c.kernels,
                       c.communication, c.host, fmt::join(names, ", "));
  }
  return out;
}

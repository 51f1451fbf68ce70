#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/logs/megatron.h"
#include "planner/calibrate/intervals.h"
#include "simulator/check/translate.h"

namespace planner {

// A measured run of the user's own system.
struct OwnRun {
  std::string name;
  simulator::Translation run;
  double measured_s = 0.0;
};

// A run as `--calibrate-with` names it: a log of Megatron-LM (its machine where the log does not say), TABLE.csv:ID, or the ID
// of a row of data/measured/runs.csv. Throws InputError naming the flag where it is none, has no step time, or cannot be
// predicted.
OwnRun read_own_run(const std::string& argument, const core::MegatronMachine& machine);

// What is known of factors before any run: data/calibration/own_runs.json.
struct OwnRunRules {
  double common_sigma = 0.0;  // of the logarithm of the factor that all durations share
  double part_sigma = 0.0;    // of that of communication or the host over it
  double noise = 0.0;         // of the logarithm of a run's time that no factor explains
  double least_gain = 0.0;    // share by which another factor must lower the error of left-out runs
};
OwnRunRules read_own_run_rules(const std::filesystem::path& file);

// One run: measured over predicted, for all durations. Several: a common factor, and factors of communication and of the host
// over it where they lower the error of left-out runs; never as many factors as runs. Least squares on log(predicted /
// measured).
simulator::SystemCalibration calibrate_to(const std::vector<OwnRun>& runs, const OwnRunRules& rules);

// Step time of a run under a calibration, as often as wanted.
double predicted_s(const simulator::Translation& run, const simulator::SystemCalibration& calibration);

}  // namespace planner

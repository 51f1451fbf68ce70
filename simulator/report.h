#pragma once

#include <optional>
#include <string>

#include "core/io/json_writer.h"
#include "simulator/request.h"
#include "simulator/step.h"

namespace simulator {

// Members of one element of "plans" (CLI.md), into an open object.
void write_step(core::JsonWriter& json, const Setting& setting, const StepReport& report, std::optional<double> tokens);
void write_request(core::JsonWriter& json, const Request& request);
void write_model(core::JsonWriter& json, const core::ModelSpec& model);
// "calibration": the runs that calibrated the setting and their factors, or null.
void write_calibration(core::JsonWriter& json, const Setting& setting);
void write_cluster(core::JsonWriter& json, const Setting& setting);
void write_sources(core::JsonWriter& json, const Setting& setting);
void write_operations(core::JsonWriter& json, const StepReport& report);

// Readable parts of a report.
std::string verdict_text(const StepReport& report);    // "fits: 61.2 of 79.1 GiB on stage 0"
std::string memory_text(const StepReport& report);     // a table, a row a stage
std::string breakdown_text(const StepReport& report);  // what the slowest rank does
std::string operations_text(const StepReport& report, std::size_t most);
// "FLOPs count 2.45 B active parameters a token: ..."; "" where all parameters are active.
std::string flops_parameters_text(const core::ModelSpec& model);
// "calibrated with ID: 3.53 s measured, 3.60 s predicted; times x 0.979", a line a run; "" where nothing calibrated it.
std::string calibration_text(const Setting& setting);
std::string headline_text(const Setting& setting, const StepReport& report, std::optional<double> tokens);

std::string step_csv_header();
std::string step_csv(const Setting& setting, const StepReport& report, std::size_t rank);

struct Totals {
  double steps = 0.0, days = 0.0, usd = 0.0, energy_MWh = 0.0;
};
// For a number of training tokens. Energy: GPUs at their rated power.
Totals totals_for(const Setting& setting, const StepReport& report, double tokens);

// 512 GB/s-style rounding for people: three significant digits.
std::string three_digits(double value);
std::string seconds_text(double seconds);  // "12.3 s", "840 ms"

// Writes an output where it was asked for: a file, or stdout for "".
void deliver(const std::string& text, const std::string& file);

}  // namespace simulator

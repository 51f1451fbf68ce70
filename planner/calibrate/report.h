#pragma once

#include <string>
#include <vector>

#include "planner/calibrate/calibrate.h"
#include "planner/calibrate/calibrate_kernels.h"

namespace planner {

// Fitted values beside their starts, and errors by source before, after and left out.
std::string calibration_table(const Calibration& calibration);
std::string calibration_json(const Calibration& calibration);

// The same of fits to kernels, each under its name, with a table of all fits first.
std::string kernels_table(const std::vector<KernelCalibration>& fits);
std::string kernels_json(const std::vector<KernelCalibration>& fits);

// What is to be said of a parameter: "no row touches it", "at a bound", "does not help"; "" for
// nothing.
std::string remark_on(const FittedParameter& fitted);

}  // namespace planner

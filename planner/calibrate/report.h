#pragma once

#include <string>

#include "planner/calibrate/calibrate.h"

namespace planner {

// Fitted values beside their starts, and errors by source before, after and left out.
std::string calibration_table(const Calibration& calibration);
std::string calibration_json(const Calibration& calibration);

// What is to be said of a parameter: "no row touches it", "at a bound", "does not help"; "" for
// nothing.
std::string remark_on(const FittedParameter& fitted);

}  // namespace planner

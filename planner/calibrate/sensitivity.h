#pragma once

#include <string>
#include <vector>

#include "planner/calibrate/parameters.h"
#include "planner/calibrate/rows.h"

namespace planner {

// How far predicted step times follow a figure of data/.
struct Sensitivity {
  Target figure;               // a number or a whole list, as data/ has it now
  std::size_t rows = 0;        // whose time moves at all
  double share = 0.0;          // of all rows
  double mean_change = 0.0;    // |relative change| of the time, mean over all rows
};

// The figures of data/curves and data/frameworks that specifications name, each once, in their order, with the numbers that
// the files have now.
std::vector<Target> declared_figures(const std::vector<CalibrationSpec>& specs);

// What a factor on each figure does to the rows, most first; equal ones by name.
std::vector<Sensitivity> sensitivities(const std::vector<Target>& figures,
                                       const CalibrationRows& rows,
                                       double factor);

std::string sensitivities_table(const std::vector<Sensitivity>& found, std::size_t rows, double factor);
std::string sensitivities_json(const std::vector<Sensitivity>& found, std::size_t rows, double factor);

}  // namespace planner

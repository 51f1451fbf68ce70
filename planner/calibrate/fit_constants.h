#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "planner/calibrate/calibrate.h"

namespace planner {

// Measured rows as a fit of constants sees them.
struct Observations {
  struct Row {
    std::string source;
    double weight = 0.0;
    bool held_back = false;  // judged by the fit, not in it
    std::string configuration = {};        // rows of a source that say the same are repeats of one
    std::vector<std::string> groups = {};  // summed up together, beside their sources
  };
  std::vector<Row> rows;
  // log(predicted / measured) of a row at those of some points x that are named by their index: each parameter at its start
  // times exp(x).
  using Residuals = std::function<std::vector<double>(std::size_t row, const std::vector<std::size_t>& which)>;
  std::function<Residuals(const std::vector<std::vector<double>>& points)> at;
  // Whether a parameter is among the numbers that a row reads.
  std::function<bool(std::size_t parameter, std::size_t row)> reaches;
  double tolerance = 1e-7;  // relative change of the cost at which a fit stops
};

// Fits the parameters of a specification to rows (fitting/least_squares.h), starts are priors.
Calibration fit_constants(const CalibrationSpec& spec,
                          const Observations& observed,
                          LeaveOneOut leave_one_out);

}  // namespace planner

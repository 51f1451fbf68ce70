#pragma once

#include <vector>

#include "planner/calibrate/curve_targets.h"
#include "planner/calibrate/parameters.h"
#include "planner/calibrate/rows.h"

namespace planner {

// Prices rows with other values of the parameters than data/ has. A parameter reaches a row when
// the row's GPU (CurveTargets) or framework reads a number from one of its files.
class Pricing {
 public:
  Pricing(const CalibrationSpec& spec, const std::vector<CalibrationRow>& rows);

  // Whether a parameter's numbers are among those that a row reads.
  bool reaches(std::size_t parameter, std::size_t row) const { return reaches_[parameter][row]; }

  // Each parameter at its start times exp(x), and the curves of all GPUs of the rows with it.
  struct Point {
    std::vector<double> x;
    CurvesByGpu curves;
  };
  Point at(std::vector<double> x) const;

  // log(predicted / measured) of a row at each of some points. The row's graph is made once for all of them.
  std::vector<double> residuals(std::size_t row, const std::vector<const Point*>& points) const;

 private:
  simulator::Setting setting_at(const simulator::Setting& setting, const std::vector<double>& x) const;

  const CalibrationSpec& spec_;
  const std::vector<CalibrationRow>& rows_;
  CurveTargets targets_;
  std::vector<std::vector<bool>> reaches_;  // by parameter, by row
};

}  // namespace planner

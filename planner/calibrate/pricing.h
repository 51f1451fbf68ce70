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

  // The curves of all GPUs of the rows with each parameter at its start times exp(x).
  CurvesByGpu curves(const std::vector<double>& x) const { return targets_.at(x); }

  // log(predicted / measured) of a row; `curves` of the same x.
  double residual(std::size_t row, const std::vector<double>& x, const CurvesByGpu& curves) const;

 private:
  const CalibrationSpec& spec_;
  const std::vector<CalibrationRow>& rows_;
  CurveTargets targets_;
  std::vector<std::vector<bool>> reaches_;  // by parameter, by row
};

}  // namespace planner

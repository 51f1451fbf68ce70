#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/calibrate/parameters.h"
#include "planner/calibrate/rows.h"
#include "simulator/cost/cost.h"

namespace planner {

// Prices rows with other values of the parameters than data/ has. A parameter reaches a row when
// the row's GPU or framework reads a number from one of its files: a number of
// data/curves/<gpu>.json hides that of the architecture.
class Pricing {
 public:
  Pricing(const CalibrationSpec& spec, const std::vector<CalibrationRow>& rows);

  // Whether a parameter's numbers are among those that a row reads.
  bool reaches(std::size_t parameter, std::size_t row) const { return reaches_[parameter][row]; }

  // The curves of all GPUs of the rows with each parameter at its start times exp(x).
  using CurvesByGpu = std::map<std::string, simulator::Curves>;
  CurvesByGpu curves(const std::vector<double>& x) const;

  // log(predicted / measured) of a row; `curves` of the same x.
  double residual(std::size_t row, const std::vector<double>& x, const CurvesByGpu& curves) const;

 private:
  const CalibrationSpec& spec_;
  const std::vector<CalibrationRow>& rows_;
  CurvesByGpu shipped_;
  std::map<std::string, std::set<const Target*>> reads_;  // of data/curves, by GPU
  std::vector<std::vector<bool>> reaches_;                // by parameter, by row
};

}  // namespace planner

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/calibrate/parameters.h"
#include "planner/calibrate/rows.h"
#include "simulator/check/summary.h"

namespace planner {

enum class LeaveOneOut : std::uint8_t { no, yes };

// A parameter after the fit.
struct FittedParameter {
  double value = 0.0;            // of the first number, six significant digits
  double standard_error = 0.0;   // of its logarithm: relative
  std::size_t rows_touched = 0;  // whose times it moves at all; at 0 it stays at its start
  bool at_bound = false;
  // Median error of left-out sources with this parameter held at its start, less that with all
  // fitted, from fits on the model linearised at the fit. Above 0: it helps.
  std::optional<double> helps_by;
};

// Errors of a source's rows, relative: predicted / measured - 1. A source that was held back from the
// fit has its errors under it as well.
struct SourceErrors {
  std::string source;  // "all" for the last: the rows that were fitted
  simulator::ErrorSummary before, after;
  // Priced with what is fitted without the source, on the model linearised at the fit.
  std::optional<simulator::ErrorSummary> left_out;
  // The same after one factor from one row of the source (one_factor.h): sizes alone, no bias.
  std::optional<simulator::ErrorSummary> one_factor;
};

struct Calibration {
  CalibrationSpec spec;
  std::vector<FittedParameter> fitted;  // as spec.parameters
  std::vector<SourceErrors> sources;    // by name, then all
  std::vector<SourceErrors> groups;     // rows of several sources, by name: "dense", "MoE"
  std::size_t rows = 0, held_back = 0, skipped = 0;  // fitted, only judged, not understood
  bool converged = false;
  std::string message;
  int iterations = 0;

  const SourceErrors& all() const { return sources.back(); }
  // The numbers of a target of a parameter after the fit, six significant digits each.
  std::vector<double> numbers(std::size_t parameter, std::size_t target) const;
};

// Fits the parameters to the rows' step times: each log(predicted / measured) is a residual
// (fitting/least_squares.h), starts are priors. The result does not depend on the number of
// threads, nor on what data/ says of the parameters now.
Calibration calibrate(const CalibrationSpec& spec,
                      const CalibrationRows& rows,
                      LeaveOneOut leave_one_out,
                      int threads = 0);

}  // namespace planner

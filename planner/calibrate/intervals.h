#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "planner/calibrate/parameters.h"
#include "planner/calibrate/rows.h"
#include "simulator/uncertainty.h"

namespace planner {

// data/calibration/intervals.json: how intervals are made from residuals.
struct IntervalRules {
  double share = 0.0;          // of runs inside
  double degrees = 0.0;        // of Student's t between sources
  double prior_sources = 0.0;  // that a wider class counts as
  std::size_t pair_rows = 0;   // most rows of a source that pairs are made of
  double unmeasured_widening = 1.0;
  std::string unmeasured_source;
  std::vector<simulator::SoftwareGroup> software;
};
IntervalRules read_interval_rules(const std::filesystem::path& file);

// A measured run as intervals see it.
struct ResidualRow {
  std::string id, source, gpu, architecture, configuration;
  simulator::RunClass runs;
  double residual = 0.0;  // log(measured / predicted)
  double weight = 0.0;    // within its source
};
// Predicts rows with the constants of data/, on all cores.
std::vector<ResidualRow> residual_rows(const CalibrationRows& rows, const IntervalRules& rules);

// Intervals of all classes that the rows are of. A source weighs as `spec` says.
simulator::Uncertainty intervals_of(const std::vector<ResidualRow>& rows,
                                    const IntervalRules& rules,
                                    const CalibrationSpec& spec);

// How many rows of what was left out lie in the intervals made without it.
struct Coverage {
  std::string left_out;  // "all" for the last
  std::size_t rows = 0, covered = 0;
  std::size_t pairs = 0, pairs_covered = 0;   // of runs, one of which calibrates the other
  double weight = 0.0, covered_weight = 0.0;  // as sources weigh in a fit
  std::vector<double> errors,
      errors_after;  // |predicted / measured - 1| of rows; of the later of pairs after the factor of the other

  double share() const { return rows > 0 ? static_cast<double>(covered) / static_cast<double>(rows) : 0.0; }
  double pair_share() const { return pairs > 0 ? static_cast<double>(pairs_covered) / static_cast<double>(pairs) : 0.0; }
  double weighted_share() const { return weight > 0.0 ? covered_weight / weight : 0.0; }
};
enum class LeftOut : std::uint8_t { source, architecture };
std::vector<Coverage> coverage_left_out(const std::vector<ResidualRow>& rows,
                                        const IntervalRules& rules,
                                        const CalibrationSpec& spec,
                                        LeftOut what);

struct IntervalReport {
  simulator::Uncertainty intervals;
  std::vector<Coverage> by_source, by_architecture;
};
std::string intervals_table(const IntervalReport& report);
std::string intervals_json(const IntervalReport& report);

}  // namespace planner

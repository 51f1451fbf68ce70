#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/measured/table.h"
#include "planner/calibrate/parameters.h"
#include "simulator/check/translate.h"

namespace planner {

// A measured run, translated once, and what it counts.
struct CalibrationRow {
  std::string id, source;
  std::string configuration;  // rows that say the same are repeats of one
  simulator::Translation run;
  double measured_s = 0.0;
  double weight = 0.0;
  bool held_back = false;  // judged by the fit, not in it
};

struct CalibrationRows {
  std::vector<CalibrationRow> rows;  // in the order of the tables, an id once
  std::size_t skipped = 0;  // not simulatable, not to be said in our terms, or without a step time
};

// The source of a row for leaving it out: all releases and tables of Megatron-Bridge ("mb...") are
// one, else simulator::source_of.
std::string calibration_source(const core::MeasuredRun& run);

// All rows that have a step time to be predicted, weighted so that no source dominates: a source
// of n different configurations weighs sqrt(n) rows, at most `source_most`, times its weight in the
// specification; rows of one configuration share its weight. Those of the source `leave_out` ("" for
// none) are held back; throws InputError where no row has it.
CalibrationRows calibration_rows(const std::vector<core::MeasuredTable>& tables,
                                 const CalibrationSpec& spec,
                                 const std::string& leave_out = "");

}  // namespace planner

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/measured/table.h"
#include "simulator/check/predict.h"

namespace simulator {

// A row held against its prediction. Errors are predicted / measured - 1.
struct CheckedRow {
  core::MeasuredRun run;
  std::string source;             // source_of(run)
  std::string skipped_because;    // "" where it was predicted
  std::string plan, recipe, gpu;  // as we say them
  std::int64_t sequence = 0;
  Notes notes;
  std::optional<Measurement> measured;
  std::optional<Prediction> predicted;
  std::optional<double> step_time_error, memory_error;
  std::optional<double> predicted_memory_GiB;                     // of the measured kind and rank
  std::optional<double> predicted_tflops_per_gpu, predicted_mfu;  // under the source's convention
  double seconds = 0.0;                                           // that the prediction took

  std::string_view measured_status() const { return run.out_of_memory ? "oom" : "ok"; }
};

// Where a row comes from: the prefix of its id, by the table of data/measured/README.md.
std::string source_of(const core::MeasuredRun& run);

// Translates, predicts and compares one row.
CheckedRow check_row(const core::MeasuredRun& run);

// All rows of the tables, in their order, on all cores. An id that stands in an earlier table with
// the same contents is left out.
std::vector<CheckedRow> check_rows(const std::vector<core::MeasuredTable>& tables);

}  // namespace simulator

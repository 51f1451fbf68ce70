#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/logs/observations.h"
#include "fitting/law.h"
#include "fitting/solver/row_formula.h"

namespace fitting {

struct RunOptions {
  core::ObservationOptions reading;   // `wanted` is filled in from the law
  std::int64_t drop_highest = 0;      // rows of the largest measured values that are left out
  double near_best = 0.0025;          // of laws of settings: how far above the least loss runs count (best_settings.h)
  std::string holdout;                // "compute>1e21": rows that are predicted, not fitted
};

// Runs as rows of a law.
struct Runs {
  core::Observations observations;    // rows left out here are among its dropped ones
  Rows rows;
  std::vector<bool> held_out;         // [row]
  std::vector<std::string> assumed;   // variables that no column has: the same in all rows
};

// Reads files as rows of a law: its variables and its value, those with a value of their own only where a column has them. Throws
// InputError for files that do not read, and where no row is left.
Runs read_runs(const Law& law, const std::vector<std::filesystem::path>& files, const RunOptions& options);

// Leaves out rows, their names and other columns too.
void keep_rows(Runs& runs, const std::vector<bool>& keep);

// The same of observations that were read already.
Runs runs_of(const Law& law, core::Observations observations, const RunOptions& options);

// Names of the law's variables that its rows must give, its value among them.
std::vector<std::string> wanted_by(const Law& law);

}  // namespace fitting

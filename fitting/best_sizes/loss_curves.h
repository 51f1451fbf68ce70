#pragma once

#include <filesystem>
#include <vector>

#include "core/logs/observations.h"
#include "fitting/best_sizes/envelope.h"
#include "fitting/best_sizes/isoflop.h"

namespace fitting {

struct CurveRuns {
  std::vector<LossCurve> curves;      // by file and name, of two points or more
  core::Observations observations;    // its notes and what was left out; no rows
};

// Tables with a row for each evaluation of a run: tokens (or what gives them), loss, parameters, and a column that names the run;
// without one, rows of one size are one run. Points that do not go on in C are left out. Throws InputError for a file that
// does not read, and where a variable has no column.
CurveRuns read_loss_curves(const std::vector<std::filesystem::path>& files, core::ObservationOptions options);

struct FinalRuns {
  ComputeRuns runs;
  core::Observations observations;
};

// Runs with their final losses and their compute: the file's, else 6 N D.
FinalRuns read_compute_runs(const std::vector<std::filesystem::path>& files, core::ObservationOptions options);

}  // namespace fitting

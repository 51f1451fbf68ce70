#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/logs/curve.h"
#include "core/logs/run_table.h"

namespace core {

// One run as its steps are read, from a table or a log.
struct StepRun {
  std::string row, name;
  Curve curve;                         // its losses
  LossKind kind = LossKind::training;  // of these
  std::vector<double>
      values;  // of the table's variables but L and step, at the last step that has them
  std::optional<double> total_steps;  // that it was to take
};

// Adds a run to a table whose variables begin with L and step: its end, or why there is none.
void add_step_run(const StepRun& run, const ObservationOptions& options, RunTable& table);

// What the loss of a row is, for the notes.
std::string loss_note(const ObservationOptions& options, const std::string& file, const std::string& loss, LossKind kind);

}  // namespace core

#include "core/logs/step_run.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"

namespace core {

namespace {

// Why a run does not count, or "".
std::string problem_of(const StepRun& run, const ObservationOptions& options) {
  if (run.curve.empty()) return "no step has a loss";
  if (!options.keep_diverged)
    if (auto why = run.curve.why_diverged(); !why.empty()) return why;
  if (std::isnan(run.curve.final_loss(run.kind))) return "none of its last losses is finite";
  if (!options.keep_unfinished)
    if (auto why = run.curve.why_unfinished(run.total_steps); !why.empty()) return why;
  return {};
}

}  // namespace

void add_step_run(const StepRun& run, const ObservationOptions& options, RunTable& table) {
  CORE_ASSERT(run.values.size() + 2 == table.variables.size());
  RunTable::Run row{run.row,
                    run.name,
                    {run.curve.final_loss(run.kind), run.curve.last_step()},
                    problem_of(run, options)};
  row.values.insert(row.values.end(), run.values.begin(), run.values.end());
  table.runs.push_back(std::move(row));
  if (!options.keep_diverged && run.curve.not_finite() > 0 && run.curve.why_diverged().empty()) {
    table.notes.push_back(fmt::format("{}: {} of {} losses are not finite, and left out",
                                      run.row,
                                      run.curve.not_finite(),
                                      run.curve.points()));
  }
  if (run.curve.went_back() > 0) {
    table.notes.push_back(
        fmt::format("{}: goes back to an earlier step {} times: what it did again counts",
                    run.row,
                    run.curve.went_back()));
  }
}

std::string end_of_curve_note(const std::string& file, const std::string& loss, LossKind kind) {
  return fmt::format(
      "{}: L <- {}, {}",
      file,
      loss,
      kind == LossKind::evaluation
          ? "the mean of the last 1 % of a run's evaluations, or the last"
          : "the mean of the middle 80 % of the last 1 % of a run's points (of 10 at least, "
            "but no more than a tenth)");
}

}  // namespace core

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

constexpr double warm_up = 0.01;  // of a run, whose losses are no points of it

// A row for each stretch of steps. Counts that grow with the steps (tokens, FLOPs, epochs) are known at the
// end, and in proportion before.
void add_points(const StepRun& run, RunTable& table) {
  if (run.curve.empty()) {
    table.runs.push_back({run.row, run.name, std::vector<double>(table.variables.size(), std::nan("")), "no step has a loss"});
    return;
  }
  const double end = run.curve.last_step();
  std::size_t left_out = 0;
  for (const auto& [step, loss] : run.curve.along()) {
    if (step < warm_up * end || step <= 0.0) {
      ++left_out;
      continue;
    }
    const auto where = fmt::format(" step {:.0f}", step);
    RunTable::Run row{run.row + where, run.name.empty() ? "" : run.name + where, {loss, step}, {}};
    for (std::size_t v = 0; v < run.values.size(); ++v) {
      const auto& variable = table.variables[v + 2];
      const bool grows = variable == "D" || variable == "C" || variable == "epochs";
      row.values.push_back(grows ? run.values[v] * step / end : run.values[v]);
    }
    table.runs.push_back(std::move(row));
  }
  if (left_out > 0) table.notes.push_back(fmt::format("{}: its first hundredth of steps is left out", run.row));
}

}  // namespace

void add_step_run(const StepRun& run, const ObservationOptions& options, RunTable& table) {
  CORE_ASSERT(run.values.size() + 2 == table.variables.size());
  if (options.along) return add_points(run, table);
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

std::string loss_note(const ObservationOptions& options, const std::string& file, const std::string& loss, LossKind kind) {
  if (options.along) return fmt::format("{}: L <- {}, means of stretches of steps along each run", file, loss);
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

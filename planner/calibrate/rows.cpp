#include "planner/calibrate/rows.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "core/error.h"
#include "planner/parallel.h"
#include "simulator/check/check.h"
#include "simulator/check/measurement.h"

namespace planner {

namespace {

std::string configuration_of(const CalibrationRow& row) {
  const auto& s = row.run.setting;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}",
                     row.source,
                     s.cluster.gpu.name,
                     s.gpus,
                     s.model.name,
                     s.seq,
                     s.recipe.name,
                     core::to_text(row.run.plan));
}

std::optional<CalibrationRow> row_of(const core::MeasuredRun& run) {
  if (!run.simulatable || run.out_of_memory) return std::nullopt;
  try {
    CalibrationRow row;
    row.id = run.id;
    row.source = calibration_source(run);
    row.run = simulator::translate(run);
    const auto& setting = row.run.setting;
    const auto measured = simulator::measurement_of(run, setting.model, row.run.plan, setting.seq);
    if (!measured.step_time_s || !(*measured.step_time_s > 0.0)) return std::nullopt;
    row.measured_s = *measured.step_time_s;
    row.configuration = configuration_of(row);
    const simulator::Bench bench(setting);
    if (simulator::why_not_offload(setting, bench, row.run.plan)) return std::nullopt;
    return row;
  } catch (const core::InputError&) {
    return std::nullopt;  // `simulate check` says why
  }
}

void weigh(std::vector<CalibrationRow>& rows, const CalibrationSpec& spec) {
  std::map<std::string, std::map<std::string, int>> repeats;  // by source, by configuration
  for (const auto& row : rows) ++repeats[row.source][row.configuration];
  for (auto& row : rows) {
    const auto& of_source = repeats.at(row.source);
    const auto factor = spec.source_weights.find(row.source);
    row.weight = weight_of_each(of_source.size(), spec.source_most) / of_source.at(row.configuration);
    if (factor != spec.source_weights.end()) row.weight *= factor->second;
  }
}

}  // namespace

std::string calibration_source(const core::MeasuredRun& run) {
  auto source = simulator::source_of(run);
  return source.starts_with("mb") ? "mb" : source;
}

CalibrationRows calibration_rows(const std::vector<core::MeasuredTable>& tables,
                                 const CalibrationSpec& spec,
                                 const std::string& leave_out) {
  std::vector<const core::MeasuredRun*> runs;
  std::set<std::string_view> seen;
  for (const auto& table : tables) {
    for (const auto& run : table.runs) {
      if (seen.insert(run.id).second) runs.push_back(&run);
    }
  }
  std::vector<std::optional<CalibrationRow>> translated(runs.size());
  parallel_for(runs.size(), [&](std::size_t i) { translated[i] = row_of(*runs[i]); });
  CalibrationRows result;
  for (auto& row : translated) {
    if (row) {
      result.rows.push_back(std::move(*row));
    } else {
      ++result.skipped;
    }
  }
  bool held_back = leave_out.empty();
  for (auto& row : result.rows) {
    if (row.source == leave_out) row.held_back = held_back = true;
  }
  if (!held_back)
    throw core::InputError(
        fmt::format("--leave-out {}: no row of the tables has this source", leave_out));
  weigh(result.rows, spec);
  return result;
}

}  // namespace planner

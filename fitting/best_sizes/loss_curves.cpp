#include "fitting/best_sizes/loss_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/column_map.h"
#include "core/logs/derive.h"
#include "core/logs/plain_table.h"
#include "core/logs/run_table.h"

namespace fitting {
namespace {

const std::vector<std::string> wanted = {"N", "D", "C", "L"};

struct Point {
  double C, D, L;
  std::string row;
};
using PointsOfRuns = std::map<std::tuple<std::string, std::string, double>, std::vector<Point>>;  // by file, run and N

std::string problem_of(const std::vector<double>& values) {
  for (std::size_t w = 0; w < wanted.size(); ++w) {
    if (!std::isfinite(values[w])) return fmt::format("no {}", wanted[w]);
    if (!(values[w] > 0.0)) return fmt::format("{} is {:g}, expected more than 0", wanted[w], values[w]);
  }
  return {};
}

// Throws InputError for a variable that no row has.
void require_columns(const core::RunTable& table, const std::vector<std::vector<double>>& values) {
  for (std::size_t w = 0; w < wanted.size(); ++w) {
    if (values.empty() || std::any_of(values.begin(), values.end(), [&](const auto& row) { return std::isfinite(row[w]); })) continue;
    throw core::InputError(fmt::format("{}: no column is or gives {}, expected --columns {}=COLUMN; columns: {}", table.path, wanted[w], wanted[w],
                                       core::list_names(table.header)));
  }
}

void add_table(core::RunTable table, const core::ObservationOptions& options, PointsOfRuns& runs, core::Observations& all) {
  all.notes.insert(all.notes.end(), table.notes.begin(), table.notes.end());
  all.warnings.insert(all.warnings.end(), table.warnings.begin(), table.warnings.end());
  const auto values = core::asked_values(table, options, all.notes);
  require_columns(table, values);
  bool named = false;
  for (std::size_t i = 0; i < table.runs.size(); ++i) {
    auto& run = table.runs[i];
    const auto why = run.problem.empty() ? problem_of(values[i]) : run.problem;
    if (!why.empty()) {
      all.dropped.push_back({run.row, why});
      continue;
    }
    named = named || !run.name.empty();
    runs[{table.file, run.name, values[i][0]}].push_back({values[i][2], values[i][1], values[i][3], std::move(run.row)});
  }
  if (!named) all.notes.push_back(fmt::format("{}: no column names runs: rows of one size are one run", table.file));
  all.dropped.insert(all.dropped.end(), table.dropped.begin(), table.dropped.end());
}

// In the order of their compute; rows that stand at one compute twice are left out but for the first.
LossCurve curve_of(const std::string& name, double N, std::vector<Point> points, core::Observations& all) {
  std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.C < b.C; });
  LossCurve curve{name, N, {}, {}, {}};
  for (auto& point : points) {
    if (!curve.C.empty() && !(point.C > curve.C.back() && point.D > curve.D.back())) {
      all.dropped.push_back({std::move(point.row), fmt::format("stands where another row of {} does (D {:g})", name.empty() ? "its size" : core::printable(name), point.D)});
      continue;
    }
    curve.C.push_back(point.C), curve.D.push_back(point.D), curve.L.push_back(point.L);
  }
  return curve;
}

}  // namespace

CurveRuns read_loss_curves(const std::vector<std::filesystem::path>& files, core::ObservationOptions options) {
  options.wanted = wanted;
  CurveRuns result;
  PointsOfRuns runs;
  for (const auto& file : files) {
    core::TableReader table(core::LineReader::file(file));
    const auto map = core::map_columns(table.header(), table.name(), options);
    const core::Conditions where(options.where, table.header(), map, table.name());
    add_table(core::read_plain_table(table, map, where, options), options, runs, result.observations);
  }
  for (auto& [key, points] : runs) {
    const auto& [file, name, N] = key;
    auto curve = curve_of(name, N, std::move(points), result.observations);
    if (curve.C.size() < 2) result.observations.dropped.push_back({fmt::format("run {} in {}", name.empty() ? fmt::format("of N {:g}", N) : core::printable(name), file), "has one loss, expected several"});
    else result.curves.push_back(std::move(curve));
  }
  if (result.curves.empty()) {
    const auto& dropped = result.observations.dropped;
    throw core::InputError(fmt::format("found no run with losses along training, expected three or more{}", dropped.empty() ? "" : fmt::format("; {}: {}", dropped.back().row, dropped.back().why)));
  }
  return result;
}

FinalRuns read_compute_runs(const std::vector<std::filesystem::path>& files, core::ObservationOptions options) {
  options.wanted = wanted;
  FinalRuns result;
  result.observations = core::read_observations(files, options);
  const auto column = [&](const char* name) { return *result.observations.find(name); };
  result.runs = {column("C"), column("N"), column("D"), column("L")};
  if (result.runs.size() == 0) {
    const auto& dropped = result.observations.dropped;
    throw core::InputError(fmt::format("found no run to fit, expected some{}", dropped.empty() ? "" : fmt::format("; {}: {}", dropped.front().row, dropped.front().why)));
  }
  for (std::size_t i = 0; i < result.runs.size(); ++i) {
    if (!(result.runs.L[i] > 0.0)) throw core::InputError(fmt::format("{}: L is {:g}, expected more than 0", result.observations.rows[i], result.runs.L[i]));
  }
  return result;
}

}  // namespace fitting

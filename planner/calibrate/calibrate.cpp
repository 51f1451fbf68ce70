#include "planner/calibrate/calibrate.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "core/error.h"
#include "planner/calibrate/fit_constants.h"
#include "planner/calibrate/pricing.h"
#include "planner/parallel.h"

namespace planner {

namespace {

// Of the cost: what a fit would still gain is far below a point of any source's error, and each step prices all rows.
constexpr double tolerance = 1e-4;

// A GPU by what kernels run on: parts that differ in memory or power limit are one.
std::string chip_of(const CalibrationRow& row) {
  const auto& gpu = row.run.setting.cluster.gpu;
  const auto peak = gpu.peak("fp16");
  return fmt::format("{} {}", gpu.arch, peak ? peak->value : 0.0);
}

bool has_experts(const core::ModelSpec& model) {
  const auto parameters = core::count_parameters(model);
  return parameters.active < parameters.total;
}

// What the errors of left-out sources are summed up by: a GPU is new to a fit where no other source ran on it.
std::vector<std::vector<std::string>> groups_of(const std::vector<CalibrationRow>& rows) {
  std::map<std::string, std::set<std::string>> sources;  // by chip
  for (const auto& row : rows) sources[chip_of(row)].insert(row.source);
  std::vector<std::vector<std::string>> groups;
  for (const auto& row : rows) {
    const bool experts = has_experts(row.run.setting.model), is_new = sources.at(chip_of(row)).size() == 1;
    auto& of_row = groups.emplace_back();
    if (experts) of_row.emplace_back("MoE");
    if (is_new) of_row.emplace_back("new GPU");
    of_row.emplace_back(experts || is_new ? "MoE or new GPU" : "dense");
  }
  return groups;
}

}  // namespace

Calibration calibrate(const CalibrationSpec& spec,
                      const CalibrationRows& given,
                      LeaveOneOut leave_one_out,
                      int threads) {
  const auto& rows = given.rows;
  if (rows.empty())
    throw core::InputError("calibrate: no row of the tables can be predicted and has a step time");
  const Pricing pricing(spec, rows);
  Observations observed;
  const auto groups = groups_of(rows);
  for (std::size_t i = 0; i < rows.size(); ++i)
    observed.rows.push_back(
        {rows[i].source, rows[i].weight, rows[i].held_back, rows[i].configuration, groups[i]});
  observed.at = [&](const std::vector<std::vector<double>>& xs) -> Observations::Residuals {
    std::vector<Pricing::Point> points;
    for (const auto& x : xs) points.push_back(pricing.at(x));
    return [&pricing, points = std::move(points)](std::size_t row, const std::vector<std::size_t>& which) {
      std::vector<const Pricing::Point*> asked;
      for (const auto i : which) asked.push_back(&points[i]);
      return pricing.residuals(row, asked);
    };
  };
  observed.tolerance = tolerance;
  observed.reaches = [&](std::size_t j, std::size_t i) { return pricing.reaches(j, i); };
  Calibration result;
  on_threads(threads, [&] { result = fit_constants(spec, observed, leave_one_out); });
  result.skipped = given.skipped;
  return result;
}

}  // namespace planner

#include "planner/calibrate/calibrate.h"

#include <utility>

#include "core/error.h"
#include "planner/calibrate/fit_constants.h"
#include "planner/calibrate/pricing.h"
#include "planner/parallel.h"

namespace planner {

namespace {

// Of the cost: what a fit would still gain is far below a point of any source's error, and each step prices all rows.
constexpr double tolerance = 1e-4;

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
  for (const auto& row : rows) observed.rows.push_back({row.source, row.weight, row.held_back});
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

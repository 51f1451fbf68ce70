#include "planner/calibrate/calibrate.h"

#include <tbb/global_control.h>

#include "core/error.h"
#include "planner/calibrate/fit_constants.h"
#include "planner/calibrate/pricing.h"

namespace planner {

Calibration calibrate(const CalibrationSpec& spec,
                      const CalibrationRows& given,
                      LeaveOneOut leave_one_out,
                      int threads) {
  using tbb::global_control;
  std::optional<global_control> limit;
  if (threads > 0)
    limit.emplace(global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  const auto& rows = given.rows;
  if (rows.empty())
    throw core::InputError("calibrate: no row of the tables can be predicted and has a step time");
  const Pricing pricing(spec, rows);
  Observations observed;
  for (const auto& row : rows) observed.rows.push_back({row.source, row.weight, row.held_back});
  observed.at = [&](const std::vector<double>& x) -> Observations::Residual {
    return [&pricing, x, curves = pricing.curves(x)](std::size_t row) {
      return pricing.residual(row, x, curves);
    };
  };
  observed.reaches = [&](std::size_t j, std::size_t i) { return pricing.reaches(j, i); };
  auto result = fit_constants(spec, observed, leave_one_out);
  result.skipped = given.skipped;
  return result;
}

}  // namespace planner

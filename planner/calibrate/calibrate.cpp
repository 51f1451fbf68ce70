#include "planner/calibrate/calibrate.h"

#include "core/error.h"
#include "planner/calibrate/fit_constants.h"
#include "planner/calibrate/pricing.h"
#include "planner/parallel.h"

namespace planner {

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
  observed.at = [&](const std::vector<double>& x) -> Observations::Residual {
    return [&pricing, x, curves = pricing.curves(x)](std::size_t row) {
      return pricing.residual(row, x, curves);
    };
  };
  observed.reaches = [&](std::size_t j, std::size_t i) { return pricing.reaches(j, i); };
  Calibration result;
  on_threads(threads, [&] { result = fit_constants(spec, observed, leave_one_out); });
  result.skipped = given.skipped;
  return result;
}

}  // namespace planner

#pragma once

#include <optional>
#include <vector>

#include "planner/calibrate/fit_constants.h"

namespace planner {

// What a user's own measured run would do for the others of the same source: one factor on all its predictions, which makes
// those of one row right. Each row of a source is the calibrating one in turn. Of a row, |predicted / measured - 1| after the
// factor, the median over the calibrating rows; nothing for a row whose source has no other configuration. `residuals` are
// log(predicted / measured).
std::vector<std::optional<double>> errors_after_one_factor(const std::vector<Observations::Row>& rows,
                                                           const std::vector<double>& residuals);

}  // namespace planner

#pragma once

#include <memory>
#include <vector>

#include "fitting/solver/descent.h"
#include "fitting/law.h"
#include "fitting/solver/row_formula.h"

namespace fitting {

// Parameters as a search moves them (logarithms where the scale is) and as the formula has them.
std::vector<double> to_formula(const Law& law, std::vector<double> x);
std::vector<double> to_search(const Law& law, std::vector<double> parameters);

// The same sum of Huber losses for any law: gradients by reverse differentiation of its formula, Hessians by their central
// differences. Infinite where the law is not positive on every row that has weight. `formula` must outlive it.
std::unique_ptr<Objective> row_objective(const Law& law, const RowFormula& formula, const std::vector<double>& measured,
                                         const std::vector<double>& weights);

// Brings a start near a minimum by Ceres (Levenberg-Marquardt on the residuals, Huber's loss). False where it cannot start:
// the law is not positive there.
bool approach(const Law& law, const RowFormula& formula, const std::vector<double>& measured, const std::vector<double>& weights,
              double huber, const Bounds& bounds, std::vector<double>& x);

}  // namespace fitting

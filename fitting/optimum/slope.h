#pragma once

#include <array>
#include <span>
#include <vector>

#include "fitting/formula.h"

namespace fitting {

// A value and how it changes along two directions.
struct Slope {
  double value = 0.0;
  std::array<double, 2> along = {0.0, 0.0};
};

// A formula with its slopes, exactly (forward differentiation), symbols given in the order of formula.symbols(). What does not
// change has a slope of zero also where it is infinite. At a kink of min, max or abs it is the slope of one side.
// `nodes` is room that callers keep.
Slope slope_of(const Formula& formula, std::span<const Slope> symbols, std::vector<Slope>& nodes);

}  // namespace fitting

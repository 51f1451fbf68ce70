#pragma once

#include <cmath>

namespace fitting {

// Where a function changes from below zero at `low` to not below zero at `high`, to the last digits; `low` may be above `high`.
// Regula falsi (Illinois: an end that stays twice counts half), with a bisection where three steps did not halve the bracket: it
// needs no continuity. What is not a number counts as below zero.
template <class F>
double sign_change(double low, double high, const F& f) {
  double f_low = f(low), f_high = f(high), width = std::fabs(high - low);
  int side = 0;
  for (int step = 1; step < 300; ++step) {
    const double middle = 0.5 * (low + high);
    if (middle == low || middle == high) break;
    double at = (low * f_high - high * f_low) / (f_high - f_low);
    if (!(at > std::fmin(low, high) && at < std::fmax(low, high))) at = middle;
    if (step % 3 == 0) {
      if (std::fabs(high - low) > 0.5 * width) at = middle;
      width = std::fabs(high - low);
    }
    const double value = f(at);
    if (value == 0.0) return at;
    if (!(value > 0.0)) {
      low = at;
      f_low = value;
      if (side < 0) f_high *= 0.5;
      side = -1;
    } else {
      high = at;
      f_high = value;
      if (side > 0) f_low *= 0.5;
      side = 1;
    }
  }
  return high;
}

}  // namespace fitting

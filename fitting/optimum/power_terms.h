#pragma once

#include <optional>
#include <span>

#include "fitting/formula.h"

namespace fitting {

// c N^n D^d, the exponents of two symbols.
struct PowerTerm {
  double c = 0.0, n = 0.0, d = 0.0;
};

// E + A / N^alpha + B / D^beta.
struct TwoTerms {
  double E = 0.0, A = 0.0, alpha = 0.0, B = 0.0, beta = 0.0;
};

// A formula as one power term, read off its tree: exact for all N and D, or nothing. `symbols` in the order of
// formula.symbols(); those named "N" and "D" are left open.
std::optional<PowerTerm> power_term(const Formula& formula, std::span<const double> symbols);

// A formula as two falling terms over a floor, or nothing: Chinchilla, and what becomes it when its other variables are fixed.
std::optional<TwoTerms> two_terms(const Formula& formula, std::span<const double> symbols);

}  // namespace fitting

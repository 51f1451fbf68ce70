#pragma once

#include <cstddef>
#include <vector>

namespace fitting {

// Runs of about the same training FLOPs.
struct Budget {
  double C = 0.0;                 // the median of its runs
  std::vector<std::size_t> rows;  // by their place
};

// Runs by budget, from the least: a new one begins where C exceeds the least of the one before by more than `within` (0.05).
std::vector<Budget> budgets_of(const std::vector<double>& C, double within);

// At most `most` of them, spread evenly, the first and the last among them.
std::vector<std::size_t> spread(std::size_t count, std::size_t most);

}  // namespace fitting

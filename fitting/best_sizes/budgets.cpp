#include "fitting/best_sizes/budgets.h"

#include <algorithm>
#include <numeric>

namespace fitting {

std::vector<Budget> budgets_of(const std::vector<double>& C, double within) {
  std::vector<std::size_t> order(C.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return C[a] < C[b]; });
  std::vector<Budget> budgets;
  for (const auto row : order) {
    if (budgets.empty() || C[row] > (1.0 + within) * C[budgets.back().rows.front()]) budgets.emplace_back();
    budgets.back().rows.push_back(row);
  }
  for (auto& budget : budgets) {
    budget.C = C[budget.rows[budget.rows.size() / 2]];
    std::sort(budget.rows.begin(), budget.rows.end());
  }
  return budgets;
}

std::vector<std::size_t> spread(std::size_t count, std::size_t most) {
  std::vector<std::size_t> places;
  const auto n = std::min(count, most);
  for (std::size_t i = 0; i < n; ++i) places.push_back(n == 1 ? 0 : (i * (count - 1) + (n - 1) / 2) / (n - 1));
  return places;
}

}  // namespace fitting

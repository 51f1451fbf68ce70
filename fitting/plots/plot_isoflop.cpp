#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "fitting/best_sizes/budgets.h"
#include "fitting/plots/plane.h"
#include "fitting/plots/plot_kinds.h"

namespace fitting {
namespace {

constexpr double within = 0.05;        // runs of one budget
constexpr std::size_t fewest = 4;      // runs of a budget that is drawn
constexpr std::size_t most_drawn = 12;

std::vector<Budget> drawn(const std::vector<double>& C) {
  auto budgets = budgets_of(C, within);
  std::erase_if(budgets, [](const Budget& budget) { return budget.rows.size() < fewest; });
  std::vector<Budget> some;
  for (const auto place : spread(budgets.size(), most_drawn)) some.push_back(budgets[place]);
  return some;
}

}  // namespace

Figure isoflop_figure(const LawPicture& picture, const std::string& flag) {
  const auto budgets = drawn(compute_of(picture));
  if (budgets.empty()) throw core::InputError(fmt::format("{}: found no {} runs of about the same FLOPs, expected some for isoflop", flag, fewest));
  const LawPlane plane(picture.law, picture.rows);
  const auto& N = *column_of(picture, "N");
  Points curves, runs, best;
  std::vector<double> sizes, heights, computes;
  for (const auto& budget : budgets) {
    computes.push_back(budget.C);
    for (const auto i : budget.rows) {
      runs.push_back({N[i], picture.rows.measured[i], budget.C});
      sizes.push_back(N[i]);
      heights.push_back(picture.rows.measured[i]);
    }
  }
  const auto x = log_axis("parameters", sizes);
  for (const double C : computes) {
    for (const double size : along(x, 120)) curves.push_back({size, plane.loss(size, C), C});
    curves.emplace_back();
    const auto size = plane.best_size(C, x.low, x.high, picture.law.parameters);
    if (!size) continue;
    best.push_back({*size, plane.loss(*size, C)});
    heights.push_back(best.back()[1]);
  }
  Figure figure;
  auto title = title_of(picture);
  if (!plane.held().empty()) title.push_back("lines at " + plane.held());
  figure.title(title);
  figure.x(x);
  figure.y(log_axis(output_label(picture.law.law), heights));
  figure.colours(log_axis("training FLOPs", computes, 0.0));
  figure.add(curves, "using 1:2:3 with lines lw 1.5 lc palette", "law at a budget");
  figure.add(runs, "using 1:2:3 with points pt 7 ps 0.7 lc palette", "runs");
  figure.add(best, "using 1:2 with points pt 13 ps 1.6 lc rgb '#D55E00'", "compute-optimal");
  return figure;
}

}  // namespace fitting

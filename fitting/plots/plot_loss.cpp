#include <algorithm>
#include <cmath>

#include "fitting/best_sizes/budgets.h"
#include "fitting/plots/plane.h"
#include "fitting/plots/plot_kinds.h"

namespace fitting {
namespace {

constexpr const char* envelope_style = "using 1:2 with lines lw 2.5 dt 2 lc rgb '#000000'";

// Points of runs with a third column for their colour, those that were fitted or those held out.
Points runs_of(const LawPicture& picture, const std::vector<double>& x, const std::vector<double>& colour, bool held_out) {
  Points points;
  for (std::size_t i = 0; i < picture.rows.size(); ++i) {
    if ((!picture.held_out.empty() && picture.held_out[i]) == held_out) points.push_back({x[i], picture.rows.measured[i], colour[i]});
  }
  return points;
}

// The law at a size over compute, broken where it has no value.
void add_line(Points& lines, const LawPlane& plane, double N, const Axis& x, const Axis& y) {
  for (const double C : along(x, 120)) {
    const double L = plane.loss(N, C);
    if (std::isfinite(L) && L < 1.5 * y.high) lines.push_back({C, L, N});
  }
  lines.emplace_back();
}

Points envelope_of(const LawPicture& picture, const LawPlane& plane, const Axis& x, const std::vector<double>& sizes) {
  Points envelope;
  for (const double C : along(x, 80)) {
    const auto N = plane.best_size(C, 1e-4 * sizes.front(), 1e4 * sizes.back(), picture.law.parameters);
    if (N) envelope.push_back({C, plane.loss(*N, C)});
  }
  return envelope;
}

// A law of one variable is a line; of more, what it says of each row stands beside the row.
Figure against_first(const LawPicture& picture) {
  Figure figure;
  const auto x = abscissa_of(picture);
  const LawFunction law(picture.law.law);
  Points runs, predicted;
  std::vector<double> heights = picture.rows.measured;
  for (std::size_t i = 0; i < picture.rows.size(); ++i) {
    runs.push_back({x.values[i], picture.rows.measured[i]});
    predicted.push_back({x.values[i], law.value(picture.law.parameters, point_of(picture, i))});
  }
  const bool line = picture.law.law.variables.size() == 1;
  if (line) {
    predicted.clear();
    for (const double value : along(axis_of("", x.values), 160)) predicted.push_back({value, law.value(picture.law.parameters, {value})});
  }
  for (const auto& point : predicted) heights.push_back(point[1]);
  std::erase_if(heights, [](double v) { return !(v > 0.0) || !std::isfinite(v); });
  figure.x(axis_of(x.label, x.values));
  figure.y(log_axis(output_label(picture.law.law), heights));
  figure.add(predicted, line ? "using 1:2 with lines lw 2 lc rgb '#D55E00'" : "using 1:2 with points pt 2 ps 0.9 lc rgb '#D55E00'", "law");
  figure.add(runs, "using 1:2 with points pt 7 ps 0.6 lc rgb '#0072B2'", "runs");
  return figure;
}

}  // namespace

Figure loss_figure(const LawPicture& picture) {
  if (!has_plane(picture.law.law)) {
    auto figure = against_first(picture);
    figure.title(title_of(picture));
    return figure;
  }
  const LawPlane plane(picture.law, picture.rows);
  const auto C = compute_of(picture);
  const auto& N = *column_of(picture, "N");
  const auto sizes = distinct(N);
  const auto x = log_axis("training FLOPs", C);
  const auto envelope = envelope_of(picture, plane, x, sizes);
  auto heights = picture.rows.measured;
  for (const auto& point : envelope) heights.push_back(point[1]);
  const auto y = log_axis(output_label(picture.law.law), heights);
  Points lines;
  for (const auto place : spread(sizes.size(), 9)) add_line(lines, plane, sizes[place], x, y);
  Figure figure;
  auto title = title_of(picture);
  if (!plane.held().empty()) title.push_back("lines at " + plane.held());
  figure.title(title);
  figure.x(x);
  figure.y(y);
  figure.colours(log_axis("parameters", sizes, 0.0));
  figure.add(lines, "using 1:2:3 with lines lw 1.5 lc palette", "law at sizes of runs");
  figure.add(runs_of(picture, C, N, false), "using 1:2:3 with points pt 7 ps 0.6 lc palette", "runs");
  figure.add(runs_of(picture, C, N, true), "using 1:2:3 with points pt 6 ps 0.9 lw 1.5 lc palette", "held out");
  figure.add(envelope, envelope_style, "compute-optimal");
  return figure;
}

}  // namespace fitting

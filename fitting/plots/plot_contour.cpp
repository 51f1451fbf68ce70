#include <algorithm>
#include <cmath>

#include "fitting/solver/bootstrap.h"
#include "fitting/plots/plane.h"
#include "fitting/plots/plot_kinds.h"

namespace fitting {
namespace {

constexpr std::size_t levels = 14, most_draws = 200;

// A range of a variable of the law, of its runs where it has any, else round what is known of most laws.
std::pair<double, double> ends(const LawPicture& picture, const std::string& name, const std::vector<double>& values) {
  if (!values.empty()) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return {*low, *high};
  }
  const auto range = picture.law.range.find(name);
  if (range != picture.law.range.end()) return {range->second.low, range->second.high};
  return name == "N" ? std::pair{1e7, 1e11} : std::pair{1e18, 1e24};
}

// A little beyond the axes, where gnuplot cuts them.
Points contours_of(const LawPlane& plane, const Axis& x, const Axis& y, const Axis& colours) {
  Points contours;
  for (const double loss : along(colours, levels)) {
    for (const double N : along({"", 0.8 * y.low, 1.25 * y.high, AxisScale::log}, 500)) {
      if (const auto C = plane.compute_for(N, loss, 0.3 * x.low, 3.0 * x.high)) contours.push_back({*C, N, loss});
      else if (!contours.empty() && !contours.back().empty()) contours.emplace_back();
    }
    if (!contours.empty() && !contours.back().empty()) contours.emplace_back();
  }
  return contours;
}

// C, the best size, and the ends of its interval over the law's draws where it has any.
Points path_of(const LawPicture& picture, const LawPlane& plane, const Axis& x, const Axis& y) {
  const double low = y.low * 1e-4, high = y.high * 1e4;
  Points path;
  for (const double C : along(x, 40)) {
    const auto best = plane.best_size(C, low, high, picture.law.parameters);
    if (!best) continue;
    std::vector<double> drawn;
    for (std::size_t i = 0; i < std::min(picture.law.draws.size(), most_draws); ++i) {
      if (const auto size = plane.best_size(C, low, high, picture.law.draws[i])) drawn.push_back(*size);
    }
    path.push_back({C, *best});
    if (drawn.empty()) continue;
    const auto interval = percentile_interval(drawn, picture.confidence);
    path.back().insert(path.back().end(), {interval.low, interval.high});
  }
  return path;
}

}  // namespace

Figure contour_figure(const LawPicture& picture) {
  const LawPlane plane(picture.law, picture.rows);
  const bool runs = picture.rows.size() > 0;
  const auto C = runs ? compute_of(picture) : std::vector<double>{};
  const auto N = runs ? *column_of(picture, "N") : std::vector<double>{};
  const auto [least, largest] = ends(picture, "C", C);
  const auto [smallest, biggest] = ends(picture, "N", N);
  const auto x = log_axis("training FLOPs", {least, largest}, 0.08), y = log_axis("parameters", {smallest, biggest}, 0.08);
  auto heights = picture.rows.measured;
  const auto path = path_of(picture, plane, x, y);
  for (const auto& point : path) heights.push_back(plane.loss(point[1], point[0]));
  const auto colours = log_axis(output_label(picture.law.law), heights, 0.0);
  Points points;
  for (std::size_t i = 0; i < C.size(); ++i) points.push_back({C[i], N[i], picture.rows.measured[i]});
  Figure figure;
  auto title = title_of(picture);
  if (!plane.held().empty()) title.push_back("at " + plane.held());
  figure.title(title);
  figure.x(x);
  figure.y(y);
  figure.colours(colours);
  const bool band = !path.empty() && path.front().size() == 4;
  if (band) figure.add(path, "using 1:3:4 with filledcurves fc rgb '#D55E00' fs transparent solid 0.2 noborder", "interval of the best size");
  figure.add(contours_of(plane, x, y, colours), "using 1:2:3 with lines lw 1.5 lc palette", "equal loss");
  figure.add(path, "using 1:2 with lines lw 2.5 dt 2 lc rgb '#D55E00'", "compute-optimal size");
  figure.add(points, "using 1:2:3 with points pt 7 ps 0.6 lc palette", "runs");
  return figure;
}

}  // namespace fitting

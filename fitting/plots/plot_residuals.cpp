#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fitting/plots/plot_kinds.h"

namespace fitting {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = values.size();
  return 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

}  // namespace

Figure residual_figure(const LawPicture& picture) {
  const auto& rows = picture.rows;
  const auto x = abscissa_of(picture);
  const auto* N = column_of(picture, "N");
  const LawFunction law(picture.law.law);
  Points fitted, held_out;
  std::vector<double> residuals, sizes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    residuals.push_back(100.0 * std::log(rows.measured[i] / law.value(picture.law.parameters, point_of(picture, i))));
    sizes.push_back(std::fabs(residuals.back()));
    const bool out = !picture.held_out.empty() && picture.held_out[i];
    (out ? held_out : fitted).push_back({x.values[i], residuals.back(), N != nullptr ? (*N)[i] : 1.0});
  }
  Figure figure;
  auto title = title_of(picture);
  title.push_back(fmt::format("median of |residual| {:.3g} %", median(sizes)));
  figure.title(title);
  const auto axis = axis_of(x.label, x.values);
  figure.x(axis);
  residuals.push_back(0.0);
  figure.y(linear_axis("ln(measured / law), %", residuals));
  if (N != nullptr) figure.colours(log_axis("parameters", distinct(*N), 0.0));
  const std::string colour = N != nullptr ? "palette" : "rgb '#0072B2'";
  figure.add({{axis.low, 0.0}, {axis.high, 0.0}}, "using 1:2 with lines lw 1.5 lc rgb '#000000'");
  figure.add(fitted, "using 1:2:3 with points pt 7 ps 0.7 lc " + colour, "runs");
  figure.add(held_out, "using 1:2:3 with points pt 6 ps 0.9 lw 1.5 lc " + colour, "held out");
  return figure;
}

}  // namespace fitting

#include "fitting/plots/plot_best_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fitting {
namespace {

std::vector<std::string> title_of(const BestSizes& fit, const std::string& source) {
  const auto text = [](const Estimate& e, const std::string& name) {
    return e.interval ? fmt::format("{} = {:.4g} ({:.4g} to {:.4g})", name, e.value, e.interval->low, e.interval->high) : fmt::format("{} = {:.4g}", name, e.value);
  };
  return {fmt::format("{}: N = {:.4g} C^a, D = {:.4g} C^b", fit.law, fit.parameters[2].value, fit.parameters[3].value),
          text(fit.parameters[0], "a") + ",  " + text(fit.parameters[1], "b"), source};
}

constexpr const char* runs_style = "using 1:2:3 with points pt 7 ps 0.7 lc palette";
constexpr const char* best_style = "using 1:2 with points pt 13 ps 1.7 lc rgb '#D55E00'";

}  // namespace

Figure isoflop_fit_figure(const ComputeRuns& runs, const IsoflopFit& fit, const std::string& source) {
  Points points, refused, curves, best;
  std::vector<double> sizes, losses, computes;
  for (const auto& curve : fit.curves) {
    for (const auto row : curve.rows) {
      (curve.refused.empty() ? points : refused).push_back({runs.N[row], runs.L[row], curve.C});
      sizes.push_back(runs.N[row]), losses.push_back(runs.L[row]);
    }
    computes.push_back(curve.C);
    if (!curve.refused.empty()) continue;
    const auto [low, high] = std::minmax_element(curve.rows.begin(), curve.rows.end(), [&](auto a, auto b) { return runs.N[a] < runs.N[b]; });
    const double first = std::log(runs.N[*low]), last = std::log(runs.N[*high]);
    constexpr int steps = 60;
    for (int i = 0; i <= steps; ++i) {
      const double x = first + (last - first) * i / steps;
      curves.push_back({std::exp(x), curve.of_N.at(x), curve.C});
    }
    curves.emplace_back();
    best.push_back({std::exp(curve.of_N.vertex), curve.of_N.value});
    losses.push_back(best.back()[1]);
  }
  Figure figure;
  figure.title(title_of(fit.sizes, source));
  figure.x(log_axis("parameters", sizes));
  figure.y(linear_axis("loss, nats a token", losses));
  figure.colours(log_axis("training FLOPs", computes, 0.0));
  figure.add(curves, "using 1:2:3 with lines lw 1.5 lc palette", "curve of a budget");
  figure.add(points, runs_style, "runs");
  figure.add(refused, "using 1:2:3 with points pt 6 ps 0.7 lc palette", "runs of budgets not used");
  figure.add(best, best_style, "least loss");
  return figure;
}

Figure envelope_figure(const std::vector<LossCurve>& curves, const EnvelopeFit& fit, const std::string& source) {
  Points lines, envelope;
  std::vector<double> computes, losses, sizes;
  for (const auto& curve : curves) {
    for (std::size_t i = 0; i < curve.C.size(); ++i) lines.push_back({curve.C[i], curve.L[i], curve.N});
    lines.emplace_back();
    computes.insert(computes.end(), curve.C.begin(), curve.C.end());
    losses.insert(losses.end(), curve.L.begin(), curve.L.end());
    sizes.push_back(curve.N);
  }
  for (const auto& point : fit.envelope) envelope.push_back({point.C, point.L});
  // From the first computes on the losses fall steeply: what lies above most of the envelope is cut.
  const double top = fit.envelope.front().L * 1.6;
  std::erase_if(losses, [top](double L) { return L > top; });
  Figure figure;
  figure.title(title_of(fit.sizes, source));
  figure.x(log_axis("training FLOPs", computes, 0.02));
  figure.y(log_axis("loss, nats a token", losses));
  figure.colours(log_axis("parameters", sizes, 0.0));
  figure.add(lines, "using 1:2:3 with lines lw 1 lc palette", "runs");
  figure.add(envelope, "using 1:2 with points pt 7 ps 0.4 lc rgb '#D55E00'", "least loss");
  return figure;
}

Figure best_size_figure(const BestSizes& fit, const std::string& source) {
  Points best, spread, line;
  std::vector<double> computes, sizes;
  for (const auto& point : fit.points) {
    best.push_back({point.C, point.N});
    if (point.ln_N_sd) spread.push_back({point.C, point.N, point.N * std::exp(-2.0 * *point.ln_N_sd), point.N * std::exp(2.0 * *point.ln_N_sd)});
    computes.push_back(point.C), sizes.push_back(point.N);
  }
  const auto x = log_axis("training FLOPs", computes, 0.08);
  for (const double C : {x.low, x.high}) {
    line.push_back({C, fit.parameters[2].value * std::pow(C, fit.parameters[0].value)});
    sizes.push_back(line.back()[1]);
  }
  Figure figure;
  figure.title(title_of(fit, source));
  figure.x(x);
  figure.y(log_axis("parameters of least loss", sizes));
  figure.add(line, "using 1:2 with lines lw 2 lc rgb '#0072B2'", "N = N_coefficient C^a");
  figure.add(spread, "using 1:2:3:4 with yerrorbars pt 0 lw 1.5 lc rgb '#606060'", "two SD of the bootstrap");
  figure.add(best, best_style, "least loss");
  return figure;
}

}  // namespace fitting

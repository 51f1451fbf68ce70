#include "fitting/optimum/allocation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "fitting/optimum/sign_change.h"

namespace fitting {
namespace {

constexpr double last_x = 69.0;  // N of 1e30
constexpr double last_y = 92.0;  // D of 1e40
constexpr double step = 0.05;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double last_size(const Spending& spending) { return spending.max_N ? std::min(std::log(*spending.max_N), last_x) : last_x; }

// One line of sizes, each with the tokens that the question leaves it: what is made small along it, and its slope along x.
struct Point {
  double y = nan, objective = nan, slope = nan;
  bool too_large = false;  // no token is left
};

// Tokens that FLOPs leave to a size, less those for inference; the loss there.
Point on_budget(const Landscape& law, const Spending& spending, double ln_flops, double x) {
  const auto rate = law.ln_flops_per_token(x);
  const double all = std::exp(ln_flops - rate.value);  // tokens of training and inference
  const double D = all - spending.inference;
  if (!(D >= 1.0)) return {nan, nan, nan, true};
  const double y = std::log(D);
  const auto loss = law.loss(x, y);
  return {y, loss.value, loss.along[0] - loss.along[1] * rate.along[0] * all / D, false};
}

// Tokens that a size needs for a loss; the FLOPs for it. Along a contour of the loss dy/dx = -L_x / L_y.
Point on_contour(const Landscape& law, const Spending& spending, double target, double x) {
  const auto y = tokens_for_loss(law, x, target);
  if (!y) return {};
  const auto loss = law.loss(x, *y);
  const auto rate = law.ln_flops_per_token(x);
  const double D = std::exp(*y);
  const double trained = D / (D + spending.inference);
  return {*y, rate.value + std::log(D + spending.inference), rate.along[0] - loss.along[0] / loss.along[1] * trained, false};
}

template <class Line>
std::optional<Allocation> found(const Landscape& law, const Spending& spending, const Line& line, double x, bool inside, int minima) {
  const auto point = line(x);
  if (!std::isfinite(point.y) || !std::isfinite(point.objective)) return std::nullopt;
  const double ln_flops = law.ln_flops_per_token(x).value + std::log(std::exp(point.y) + spending.inference);
  return Allocation{x, point.y, ln_flops, false, inside, minima};
}

// Undefined sizes before the first defined one are too small, those after too large.
template <class Line>
double signed_slope(const Line& line, double x, bool seen) {
  const auto point = line(x);
  if (point.too_large) return 1.0;
  return std::isnan(point.slope) ? (seen ? 1.0 : -1.0) : point.slope;
}

// All minima between 0 and the last size, the lowest returned.
template <class Line>
std::optional<Allocation> scan(const Landscape& law, const Spending& spending, const Line& line) {
  const double end = last_size(spending);
  std::optional<Allocation> best;
  double best_objective = 0.0;
  int minima = 0;
  const auto take = [&](double x, bool inside) {
    const auto here = found(law, spending, line, x, inside, 1);
    if (!here) return;
    ++minima;
    const double objective = line(x).objective;
    if (!best || objective < best_objective) {
      best = here;
      best_objective = objective;
    }
  };
  bool seen = !std::isnan(line(0.0).slope);
  double before = 0.0, slope_before = signed_slope(line, 0.0, seen);
  if (slope_before >= 0.0) take(0.0, false);
  for (int i = 1; before < end; ++i) {
    const double x = std::min(i * step, end);
    const double slope = signed_slope(line, x, seen);
    if (slope_before < 0.0 && slope >= 0.0) {
      take(sign_change(before, x, [&](double at) { return signed_slope(line, at, seen); }), true);
    }
    seen = seen || !std::isnan(line(x).slope);
    before = x;
    slope_before = slope;
  }
  if (slope_before < 0.0 && seen) take(end, false);
  if (best) best->minima = minima;
  return best;
}

// The minimum that the slope at `near` points to.
template <class Line>
std::optional<Allocation> walk(const Landscape& law, const Spending& spending, const Line& line, double near) {
  const double end = last_size(spending);
  double from = std::min(near, end), slope_from = line(from).too_large ? 1.0 : line(from).slope;
  if (std::isnan(slope_from)) return scan(law, spending, line);
  for (double stride = slope_from < 0.0 ? 0.02 : -0.02; std::fabs(stride) < 2.0 * last_x; stride *= 2.0) {
    const double to = std::clamp(from + stride, 0.0, end);
    if (to == from) return found(law, spending, line, from, false, 1);
    const double slope_to = signed_slope(line, to, stride > 0.0);
    if ((slope_to < 0.0) != (slope_from < 0.0)) {
      const double low = stride > 0.0 ? from : to, high = stride > 0.0 ? to : from;
      return found(law, spending, line, sign_change(low, high, [&](double at) { return signed_slope(line, at, stride > 0.0); }), true, 1);
    }
    from = to;
  }
  return scan(law, spending, line);
}

template <class Line>
std::optional<Allocation> least(const Landscape& law, const Spending& spending, const Line& line, std::optional<double> near) {
  if (spending.N) return found(law, spending, line, std::log(*spending.N), false, 1);
  return near ? walk(law, spending, line, *near) : scan(law, spending, line);
}

// min A N^-alpha + B D^-beta for C = k N D: N = G (C / k)^a, D = (C / k)^b / G, a = beta / (alpha + beta), b = 1 - a,
// G = (alpha A / (beta B))^(1 / (alpha + beta)).
struct ClosedForm {
  TwoTerms t;
  double k = 6.0, a = 0.5, b = 0.5, ln_G = 0.0;

  explicit ClosedForm(const Landscape::Closed& closed) : t(closed.terms), k(closed.k) {
    const double sum = t.alpha + t.beta;
    a = t.beta / sum;
    b = t.alpha / sum;
    ln_G = std::log(t.alpha * t.A / (t.beta * t.B)) / sum;
  }
  Allocation at(double ln_flops) const {
    const double ln_nd = ln_flops - std::log(k);
    return {ln_G + a * ln_nd, b * ln_nd - ln_G, ln_flops, true, true, 1};
  }
  // L - E = (A G^-alpha + B G^beta) (C / k)^-(alpha beta / (alpha + beta)).
  double ln_flops_of(double loss) const {
    const double slope = t.alpha * t.beta / (t.alpha + t.beta);
    return std::log(k) + std::log((t.A * std::exp(-t.alpha * ln_G) + t.B * std::exp(t.beta * ln_G)) / (loss - t.E)) / slope;
  }
};

// Where there is one: without inference and bounds that bind.
std::optional<ClosedForm> closed_form(const Landscape& law, const Spending& spending) {
  if (spending.inference != 0.0 || spending.N) return std::nullopt;
  const auto closed = law.closed();
  return closed ? std::optional(ClosedForm(*closed)) : std::nullopt;
}

bool allowed(const Spending& spending, const Allocation& allocation) {
  return std::isfinite(allocation.x) && std::isfinite(allocation.y) && (!spending.max_N || allocation.x <= std::log(*spending.max_N));
}

}  // namespace

std::optional<Allocation> best_for_flops(const Landscape& law, const Spending& spending, double flops, std::optional<double> near) {
  const double ln_flops = std::log(flops);
  if (const auto form = closed_form(law, spending)) {
    const auto best = form->at(ln_flops);
    if (allowed(spending, best)) return best;
  }
  return least(law, spending, [&](double x) { return on_budget(law, spending, ln_flops, x); }, near);
}

std::optional<Allocation> cheapest_for_loss(const Landscape& law, const Spending& spending, double loss, std::optional<double> near) {
  if (const auto form = closed_form(law, spending)) {
    if (!(loss > form->t.E)) return std::nullopt;
    const auto best = form->at(form->ln_flops_of(loss));
    if (allowed(spending, best)) return best;
  }
  return least(law, spending, [&](double x) { return on_contour(law, spending, loss, x); }, near);
}

std::optional<double> tokens_for_loss(const Landscape& law, double x, double target) {
  const auto above = [&](double y) { return law.loss(x, y).value - target; };
  double before = 0.0;
  if (!(above(before) > 0.0)) return std::nullopt;  // reached without a token, or not defined
  for (double y = 1.0; y <= last_y; y += 1.0) {
    const auto here = law.loss(x, y);
    if (here.value <= target) return sign_change(before, y, [&](double at) { return -above(at); });
    if (!(here.along[1] < 0.0)) {  // it rises again: its lowest point lies before
      const double lowest = sign_change(before, y, [&](double at) { return law.loss(x, at).along[1]; });
      if (!(law.loss(x, lowest).value <= target)) return std::nullopt;
      return sign_change(before, lowest, [&](double at) { return -above(at); });
    }
    before = y;
  }
  return std::nullopt;
}

// The slope of the loss along the budget is L_x - L_y d ln r / dx; tokens bring it from above zero (too large a size) to below.
std::optional<double> tokens_of_optimal_size(const Landscape& law, double x) {
  const double rate = law.ln_flops_per_token(x).along[0];
  const auto too_small = [&](double y) {
    const auto loss = law.loss(x, y);
    return loss.along[1] * rate - loss.along[0];
  };
  double before = 0.0;
  if (!(too_small(before) < 0.0)) return std::nullopt;
  for (double y = 0.1; y <= last_y; y += 0.1) {
    if (too_small(y) >= 0.0) return sign_change(before, y, too_small);
    before = y;
  }
  return std::nullopt;
}

}  // namespace fitting

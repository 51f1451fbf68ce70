#include "fitting/plots/plane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"

namespace fitting {
namespace {

std::optional<std::size_t> place_of(const Law& law, const std::string& name) {
  for (std::size_t v = 0; v < law.variables.size(); ++v) {
    if (law.variables[v].name == name) return v;
  }
  return std::nullopt;
}

// The value that most rows have; the median where all differ.
double usual(std::vector<double> values) {
  CORE_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  std::map<double, std::size_t> counts;
  for (const double v : values) ++counts[v];
  const auto most = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->second > 1 ? most->first : values[values.size() / 2];
}

// Training FLOPs as a law without parameters.
Law flops_law(Law law) {
  law.formula = law.training_flops;
  law.parameters.clear();
  return law;
}

}  // namespace

bool has_plane(const Law& law) { return !law.training_flops.empty() && place_of(law, "N") && place_of(law, "D"); }

LawPlane::LawPlane(const FittedLaw& law, const Rows& rows) : law_(law), function_(law.law), flops_(flops_law(law.law)) {
  CORE_ASSERT(has_plane(law.law));
  n_ = *place_of(law.law, "N"), d_ = *place_of(law.law, "D");
  for (std::size_t v = 0; v < law.law.variables.size(); ++v) {
    const auto& variable = law.law.variables[v];
    usual_.push_back(rows.size() > 0 ? usual(rows.columns[v]) : variable.otherwise.value_or(1.0));
  }
}

// Training FLOPs are linear in D.
double LawPlane::tokens(double N, double C) const {
  auto at = usual_;
  at[n_] = N, at[d_] = 1.0;
  return C / flops_.value({}, at);
}

std::vector<double> LawPlane::point(double N, double C) const {
  auto at = usual_;
  at[n_] = N, at[d_] = tokens(N, C);
  return at;
}

double LawPlane::loss(double N, double C, const std::vector<double>& parameters) const { return function_.value(parameters, point(N, C)); }

std::optional<double> LawPlane::best_size(double C, double low, double high, const std::vector<double>& parameters) const {
  constexpr double ratio = 0.6180339887498949;
  double a = std::log(low), b = std::log(high);
  const double first = a, last = b;
  const auto at = [&](double x) { return loss(std::exp(x), C, parameters); };
  double x = b - ratio * (b - a), y = a + ratio * (b - a), fx = at(x), fy = at(y);
  while (b - a > 1e-5) {
    if (fx < fy) {
      b = y, y = x, fy = fx;
      x = b - ratio * (b - a), fx = at(x);
    } else {
      a = x, x = y, fx = fy;
      y = a + ratio * (b - a), fy = at(y);
    }
  }
  const double best = 0.5 * (a + b);
  if (!std::isfinite(at(best)) || best < first + 1e-4 || best > last - 1e-4) return std::nullopt;
  return std::exp(best);
}

std::optional<double> LawPlane::compute_for(double N, double target, double low, double high) const {
  double a = std::log(low), b = std::log(high);
  const auto above = [&](double x) { return loss(N, std::exp(x)) - target; };
  if (!(above(a) >= 0.0) || !(above(b) <= 0.0)) return std::nullopt;
  for (int i = 0; i < 60; ++i) (above(0.5 * (a + b)) >= 0.0 ? a : b) = 0.5 * (a + b);
  return std::exp(0.5 * (a + b));
}

std::string LawPlane::held() const {
  std::string text;
  for (std::size_t v = 0; v < usual_.size(); ++v) {
    if (v == n_ || v == d_) continue;
    text += fmt::format("{}{} = {:.4g}", text.empty() ? "" : ", ", law_.law.variables[v].name, usual_[v]);
  }
  return text;
}

}  // namespace fitting

#include "fitting/best_sizes/isoflop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "fitting/best_sizes/akima.h"
#include "fitting/best_sizes/budgets.h"
#include "fitting/solver/random_rows.h"
#include "fitting/regression.h"

namespace fitting {
namespace {

constexpr std::size_t fewest_runs = 4;

std::vector<double> logs(const std::vector<double>& values, const std::vector<std::size_t>& rows) {
  std::vector<double> out;
  for (const auto row : rows) out.push_back(std::log(values[row]));
  return out;
}

std::vector<double> at(const std::vector<double>& values, const std::vector<std::size_t>& rows) {
  std::vector<double> out;
  for (const auto row : rows) out.push_back(values[row]);
  return out;
}

// Through points; `why` is filled in where it has no vertex that can be used. `x` are logarithms of what `name` counts.
LossOver curve_through(const std::vector<double>& x, const std::vector<double>& y, Through through, const std::string& name, std::string& why) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (std::set<double>(x.begin(), x.end()).size() < 3) {
    why = fmt::format("found fewer than 3 values of {}, expected more", name);
    return {nan, nan, {}};
  }
  if (through == Through::akima) {
    const Akima akima(x, y);
    return {akima.minimum(), akima.at(akima.minimum()), [akima](double at) { return akima.at(at); }};
  }
  const auto parabola = parabola_through(x, y);
  if (!(parabola.half_curvature > 0.0)) why = fmt::format("its parabola over ln {} has no minimum (curvature {:.3g})", name, 2.0 * parabola.half_curvature);
  return {parabola.vertex, parabola.value, [parabola](double at) { return parabola.at(at); }};
}

// Why a vertex is not to be used; "" where it is.
std::string outside(const LossOver& curve, const std::vector<double>& x, const std::string& name) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  if (curve.vertex > *low && curve.vertex < *high) return {};
  return fmt::format("its best {} ({:.3g}) is not within its runs ({:.3g} to {:.3g})", name, std::exp(curve.vertex), std::exp(*low), std::exp(*high));
}

class Isoflop {
 public:
  Isoflop(const ComputeRuns& runs, const IsoflopOptions& options) : runs_(runs), options_(options) {}

  IsoflopFit run() {
    auto& sizes = fit_.sizes;
    for (auto& budget : budgets_of(runs_.C, options_.within)) fit_.curves.push_back(curve(std::move(budget)));
    for (std::size_t k = 0; k < fit_.curves.size(); ++k) use(k);
    if (sizes.points.size() < 2) {
      const auto& refused = sizes.refused;
      throw core::InputError(fmt::format("chinchilla-isoflop: found {} budgets with a vertex, expected two or more{}", sizes.points.size(),
                                         refused.empty() ? "" : fmt::format("; {}: {}", refused.front().row, refused.front().why)));
    }
    draw();
    weigh();
    regress();
    hold_out_the_largest();
    warn();
    return std::move(fit_);
  }

 private:
  struct Vertex {
    double ln_N = NAN, ln_D = NAN;  // not-a-number where a draw has none
  };

  IsoflopCurve curve(Budget budget) const {
    IsoflopCurve curve;
    curve.C = budget.C;
    curve.rows = near_the_best(std::move(budget.rows));
    fit_curves(curve, curve.rows);
    if (curve.rows.size() < fewest_runs) curve.refused = fmt::format("found {} runs, expected {} or more", curve.rows.size(), fewest_runs);
    return curve;
  }

  std::vector<std::size_t> near_the_best(std::vector<std::size_t> rows) const {
    if (!options_.near) return rows;
    const auto best = *std::min_element(rows.begin(), rows.end(), [&](auto a, auto b) { return runs_.L[a] < runs_.L[b]; });
    std::erase_if(rows, [&](auto row) { return std::fabs(std::log(runs_.N[row] / runs_.N[best])) > std::log(*options_.near) * (1.0 + 1e-9); });
    return rows;
  }

  // Through some of a budget's rows, which a draw may take more than once.
  void fit_curves(IsoflopCurve& curve, const std::vector<std::size_t>& rows) const {
    curve.refused.clear();
    const auto one = [&](LossOver& over, const std::vector<double>& values, const std::string& name) {
      if (!curve.refused.empty()) return;
      over = curve_through(logs(values, rows), at(runs_.L, rows), options_.through, name, curve.refused);
      if (curve.refused.empty()) curve.refused = outside(over, logs(values, curve.rows), name);
    };
    one(curve.of_N, runs_.N, "N");
    one(curve.of_D, runs_.D, "D");
  }

  void use(std::size_t k) {
    const auto& curve = fit_.curves[k];
    auto& sizes = fit_.sizes;
    if (!curve.refused.empty()) {
      sizes.refused.push_back({fmt::format("C = {:.4g}", curve.C), curve.refused});
      return;
    }
    used_.push_back(k);
    sizes.rows += static_cast<std::int64_t>(curve.rows.size());
    sizes.points.push_back({curve.C, std::exp(curve.of_N.vertex), std::exp(curve.of_D.vertex), curve.of_N.value,
                                 static_cast<std::int64_t>(curve.rows.size()), std::nullopt});
  }

  // Vertices of each draw, and their spread at each budget.
  void draw() {
    vertices_.assign(static_cast<std::size_t>(options_.bootstrap), std::vector<Vertex>(used_.size()));
    for (std::size_t i = 0; i < vertices_.size(); ++i) {
      auto random = generator(options_.seed, i);
      for (std::size_t k = 0; k < used_.size(); ++k) {
        auto drawn = fit_.curves[used_[k]];
        std::vector<std::size_t> rows;
        for (std::size_t r = 0; r < drawn.rows.size(); ++r) rows.push_back(drawn.rows[row_of(random, drawn.rows.size())]);
        fit_curves(drawn, rows);
        if (drawn.refused.empty()) vertices_[i][k] = {drawn.of_N.vertex, drawn.of_D.vertex};
      }
    }
    for (std::size_t k = 0; k < used_.size(); ++k) fit_.sizes.points[k].ln_N_sd = spread(k);
  }

  std::optional<double> spread(std::size_t k) const {
    double n = 0.0, mean = 0.0, squares = 0.0;  // Welford 1962
    for (const auto& draw : vertices_) {
      if (std::isnan(draw[k].ln_N)) continue;
      const double off = draw[k].ln_N - mean;
      mean += off / ++n;
      squares += off * (draw[k].ln_N - mean);
    }
    if (n < 2.0) return std::nullopt;
    return std::sqrt(squares / (n - 1.0));
  }

  void weigh() {
    if (options_.weights == Weights::equal) return;
    for (const auto& point : fit_.sizes.points) {
      if (!point.ln_N_sd) throw core::InputError(fmt::format("--weighted: found no spread of N* at C = {:.4g}, expected --bootstrap of 100 or more", point.C));
      weights_.push_back(1.0 / std::pow(std::max(*point.ln_N_sd, 1e-6), 2));
    }
  }

  void regress() {
    auto& sizes = fit_.sizes;
    const auto best = power_laws(sizes.points, weights_);
    std::vector<PowerLaws> draws;
    for (const auto& vertices : vertices_) {
      std::vector<BestAt> points;
      std::vector<double> weights;
      for (std::size_t k = 0; k < used_.size(); ++k) {
        if (std::isnan(vertices[k].ln_N)) continue;
        points.push_back({sizes.points[k].C, std::exp(vertices[k].ln_N), std::exp(vertices[k].ln_D), 0.0, 0, std::nullopt});
        if (!weights_.empty()) weights.push_back(weights_[k]);
      }
      if (points.size() < 2) ++sizes.draws_failed;
      else draws.push_back(power_laws(points, weights));
    }
    sizes.draws = options_.bootstrap;
    for (std::size_t k = 0; k < sizes.points.size(); ++k) {
      const auto& point = sizes.points[k];
      sizes.objective += (weights_.empty() ? 1.0 : weights_[k]) * std::pow(std::log(point.N) - best.ln_N - best.a * std::log(point.C), 2);
    }
    sizes.objective_kind = weights_.empty() ? "sum of squares of ln N* about its line" : "sum of squares of ln N* about its line over their variances";
    set_estimates(sizes, best, draws, options_.confidence);
  }

  void hold_out_the_largest() {
    const auto& points = fit_.sizes.points;
    if (points.size() < 3) return;
    const auto below = power_laws({points.begin(), points.end() - 1}, weights_.empty() ? weights_ : std::vector<double>{weights_.begin(), weights_.end() - 1});
    const double error = std::exp(below.ln_N + below.a * std::log(points.back().C)) / points.back().N - 1.0;
    fit_.sizes.held_out = {1, std::fabs(error), error, fmt::format("N* at C = {:.3g}, from the budgets below", points.back().C)};
  }

  // How the middle of a budget's sizes lies to their best, in ln N, and whether that changes with C.
  void warn() {
    auto& warnings = fit_.sizes.warnings;
    if (options_.through == Through::parabola) warnings.push_back("a parabola in ln N finds the best size only where alpha = beta and sizes lie evenly about it: a holds where the grids move "
                       "with the optimum, coefficients may be off by a factor (arXiv 2603.22339); `fit chinchilla`, also with --method vp, has no such bias");
    std::vector<double> C, off;
    for (const auto k : used_) {
      const auto N = logs(runs_.N, fit_.curves[k].rows);
      const auto [low, high] = std::minmax_element(N.begin(), N.end());
      C.push_back(std::log(fit_.curves[k].C));
      off.push_back(0.5 * (*low + *high) - fit_.curves[k].of_N.vertex);
    }
    const auto drift = line_through(C, off);
    if (std::fabs(drift.slope) > 0.05) {
      warnings.push_back(fmt::format("the middle of the sizes moves against the best size by a factor of {:.3g} a decade of C: a is biased", std::exp(drift.slope * std::log(10.0))));
    }
    if (used_.size() < 4) warnings.push_back(fmt::format("only {} budgets have a vertex", used_.size()));
    if (!fit_.sizes.refused.empty()) warnings.push_back(fmt::format("{} of {} budgets are not used", fit_.sizes.refused.size(), fit_.curves.size()));
    warn_of_exponents(fit_.sizes);
  }

  const ComputeRuns& runs_;
  const IsoflopOptions& options_;
  IsoflopFit fit_;
  std::vector<std::size_t> used_;               // curves with a vertex
  std::vector<std::vector<Vertex>> vertices_;   // [draw][used curve]
  std::vector<double> weights_;                 // of used curves; empty: equal
};

}  // namespace

IsoflopFit fit_isoflop(const ComputeRuns& runs, const IsoflopOptions& options) {
  auto fit = Isoflop(runs, options).run();
  fit.sizes.law = "chinchilla-isoflop";
  fit.sizes.source = "Hoffmann et al. 2022, arXiv 2203.15556, approach 2 (section 3.2)";
  return fit;
}

}  // namespace fitting

#include "fitting/best_sizes/isoflop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "core/error.h"
#include "fitting/best_sizes/loss_curves.h"

namespace fitting {
namespace {

struct Truth {
  double A = 400.0, B = 1200.0, E = 1.7, alpha = 0.31, beta = 0.31;
  double loss(double N, double D) const { return E + A / std::pow(N, alpha) + B / std::pow(D, beta); }
  // Hoffmann et al. 2022, Eq. 4.
  double best_size(double C) const {
    return std::pow(alpha * A / (beta * B), 1.0 / (alpha + beta)) * std::pow(C / 6.0, beta / (alpha + beta));
  }
};

constexpr double step = 0.45;  // of sizes, in ln N
constexpr int side = 3;        // sizes on either side of the best

// Budgets with sizes evenly about the best one, `off` steps away.
ComputeRuns grid(const Truth& truth, const std::vector<double>& budgets, double off = 0.0) {
  ComputeRuns runs;
  for (const double C : budgets) {
    for (int i = -side; i <= side; ++i) {
      const double N = truth.best_size(C) * std::exp(step * (i + off)), D = C / (6.0 * N);
      runs.C.push_back(C), runs.N.push_back(N), runs.D.push_back(D), runs.L.push_back(truth.loss(N, D));
    }
  }
  return runs;
}

const std::vector<double> budgets = {1e18, 1e19, 1e20, 1e21};

double value(const IsoflopFit& fit, std::size_t which) { return fit.sizes.parameters[which].value; }

TEST(Isoflop, FindsEqualExponentsOnCentredGrids) {
  const Truth truth;
  const auto fit = fit_isoflop(grid(truth, budgets), {.bootstrap = 0});
  EXPECT_NEAR(value(fit, 0), 0.5, 1e-9);
  EXPECT_NEAR(value(fit, 1), 0.5, 1e-9);
  for (std::size_t k = 0; k < budgets.size(); ++k) EXPECT_NEAR(fit.sizes.points[k].N / truth.best_size(budgets[k]), 1.0, 1e-8);
  EXPECT_NEAR(fit.sizes.r2_log, 1.0, 1e-12);
}

// With x = ln(N / N*) the loss is E + K (exp(-alpha x) / alpha + exp(beta x) / beta). On a grid that is even about 0 the parabola's
// terms are sums over it: slope S(xf) / S(xx), half curvature (n S(xxf) - S(xx) S(f)) / (n S(xxxx) - S(xx)^2).
TEST(Isoflop, IsOffByTheSameFactorWhereExponentsDiffer) {
  const Truth truth{.alpha = 0.35, .beta = 0.25};
  double xf = 0.0, xxf = 0.0, f = 0.0, xx = 0.0, xxxx = 0.0;
  for (int i = -side; i <= side; ++i) {
    const double x = step * i, y = std::exp(-truth.alpha * x) / truth.alpha + std::exp(truth.beta * x) / truth.beta;
    xf += x * y, xxf += x * x * y, f += y, xx += x * x, xxxx += x * x * x * x;
  }
  constexpr double n = 2 * side + 1;
  const double shift = -(xf / xx) / (2.0 * (n * xxf - xx * f) / (n * xxxx - xx * xx));
  ASSERT_GT(std::fabs(shift), 0.01);
  const auto fit = fit_isoflop(grid(truth, budgets), {.bootstrap = 0});
  EXPECT_NEAR(value(fit, 0), truth.beta / (truth.alpha + truth.beta), 1e-9);
  for (std::size_t k = 0; k < budgets.size(); ++k) EXPECT_NEAR(std::log(fit.sizes.points[k].N / truth.best_size(budgets[k])), shift, 1e-8);
  EXPECT_NE(fit.sizes.warnings.front().find("2603.22339"), std::string::npos);
}

// Sizes that stay while the best one moves.
TEST(Isoflop, WarnsOfGridsThatDoNotMoveWithTheBestSize) {
  const Truth truth;
  ComputeRuns runs;
  for (const double C : {1e20, 2e20, 4e20}) {
    for (const double N : {3e8, 6e8, 1.2e9, 2.4e9, 4.8e9}) {
      const double D = C / (6.0 * N);
      runs.C.push_back(C), runs.N.push_back(N), runs.D.push_back(D), runs.L.push_back(truth.loss(N, D));
    }
  }
  const auto moves = [](const IsoflopFit& fit) {
    for (const auto& warning : fit.sizes.warnings) {
      if (warning.find("moves against the best size") != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(moves(fit_isoflop(runs, {.bootstrap = 0})));
  EXPECT_FALSE(moves(fit_isoflop(grid(truth, budgets), {.bootstrap = 0})));
}

TEST(Isoflop, FindsTokensOnTheirOwnWhereComputeIsNotSixND) {
  const Truth truth;
  auto runs = grid(truth, budgets);
  for (std::size_t i = 0; i < runs.size(); ++i) runs.D[i] *= std::pow(runs.C[i], 0.1);  // losses stay: D of least loss moves too
  const auto fit = fit_isoflop(runs, {.bootstrap = 0});
  EXPECT_NEAR(value(fit, 0), 0.5, 1e-9);
  EXPECT_NEAR(value(fit, 1), 0.6, 1e-9);
  EXPECT_NE(fit.sizes.warnings.back().find("a + b = 1.1"), std::string::npos);
}

TEST(Isoflop, RefusesCurvesWithoutAVertexAndSaysWhy) {
  const Truth truth;
  auto runs = grid(truth, budgets);
  const auto add = [&](double C, std::vector<double> sizes, const std::function<double(double)>& loss) {
    for (const double N : sizes) runs.C.push_back(C), runs.N.push_back(N), runs.D.push_back(C / (6.0 * N)), runs.L.push_back(loss(N));
  };
  add(3e17, {1e8, 2e8, 4e8}, [&](double N) { return truth.loss(N, 3e17 / (6.0 * N)); });
  add(3e18, {1e8, 2e8, 4e8, 8e8}, [](double N) { return 3.0 - std::pow(std::log(N / 3e8), 2) / 10.0; });
  add(3e19, {1e7, 2e7, 4e7, 8e7}, [](double N) { return 2.0 + std::pow(std::log(N / 1e9), 2) / 10.0; });
  const auto fit = fit_isoflop(runs, {.bootstrap = 0});
  const auto& refused = fit.sizes.refused;
  ASSERT_EQ(refused.size(), 3U);
  EXPECT_EQ(refused[0].row + ": " + refused[0].why, "C = 3e+17: found 3 runs, expected 4 or more");
  EXPECT_EQ(refused[1].why, "its parabola over ln N has no minimum (curvature -0.2)");
  EXPECT_EQ(refused[2].why, "its best N (1e+09) is not within its runs (1e+07 to 8e+07)");
  EXPECT_EQ(fit.sizes.points.size(), budgets.size());
  EXPECT_NEAR(value(fit, 0), 0.5, 1e-9);
}

TEST(Isoflop, NeedsTwoBudgets) {
  const Truth truth;
  const auto runs = grid(truth, {1e20});
  EXPECT_THROW(fit_isoflop(runs, {}), core::InputError);
}

TEST(Isoflop, JoinsBudgetsThatDifferByLittle) {
  const Truth truth;
  const auto fit = fit_isoflop(grid(truth, {1e19, 1.03e19, 1e21}), {.bootstrap = 0});
  ASSERT_EQ(fit.curves.size(), 2U);
  EXPECT_EQ(fit.curves.front().rows.size(), 2U * (2 * side + 1));
  EXPECT_EQ(fit_isoflop(grid(truth, {1e19, 1.03e19, 1e21}), {.within = 0.01, .bootstrap = 0}).curves.size(), 3U);
}

TEST(Isoflop, KeepsRunsNearTheBest) {
  const Truth truth;
  const auto fit = fit_isoflop(grid(truth, budgets), {.near = std::exp(2.0 * step), .bootstrap = 0});
  for (const auto& curve : fit.curves) EXPECT_EQ(curve.rows.size(), 5U);
  EXPECT_NEAR(value(fit, 0), 0.5, 1e-9);
}

// Without noise each draw has the same vertex as the whole, but for draws that leave too few sizes.
TEST(Isoflop, HasNarrowIntervalsWithoutNoiseOnParabolas) {
  ComputeRuns runs;
  for (const double C : budgets) {
    for (int i = -side; i <= side; ++i) {
      const double N = 1e-1 * std::sqrt(C) * std::exp(step * i);
      runs.C.push_back(C), runs.N.push_back(N), runs.D.push_back(C / (6.0 * N)), runs.L.push_back(2.0 + 0.05 * std::pow(step * i, 2));
    }
  }
  const auto fit = fit_isoflop(runs, {.weights = Weights::by_spread, .bootstrap = 200});
  const auto& a = fit.sizes.parameters.front();
  ASSERT_TRUE(a.interval);
  EXPECT_NEAR(a.interval->low, 0.5, 1e-9);
  EXPECT_NEAR(a.interval->high, 0.5, 1e-9);
}

TEST(Isoflop, GivesTheSameTwice) {
  const Truth truth{.beta = 0.28};
  const auto once = fit_isoflop(grid(truth, budgets, 0.4), {.bootstrap = 50}), again = fit_isoflop(grid(truth, budgets, 0.4), {.bootstrap = 50});
  EXPECT_EQ(once.sizes.parameters.front().interval->low, again.sizes.parameters.front().interval->low);
  EXPECT_LT(once.sizes.parameters.front().interval->low, once.sizes.parameters.front().interval->high);
}

const std::string data = FORETRAIN_SOURCE_DIR "/../shared/scaling/data/";

IsoflopFit fit_of(const std::string& file, const std::vector<std::string>& where, const IsoflopOptions& options) {
  core::ObservationOptions reading;
  reading.where = where;
  return fit_isoflop(read_compute_runs({data + file}, reading).runs, options);
}

// Porian et al. 2024, table 1 and figure 1: exponents of their set-ups and the intervals they print.
TEST(IsoflopData, FindsTheExponentsOfPorian) {
  if (!std::filesystem::exists(data + "porian_isoflop.csv")) GTEST_SKIP() << "no ../shared/scaling/data/porian_isoflop.csv";
  struct Setup {
    std::vector<std::string> where;
    double low, high;
  };
  const std::vector<Setup> setups = {
      {{"hparams=base", "warmup=long", "decay=kaplan", "param_count=kaplan"}, 0.82, 0.85},
      {{"hparams=base", "warmup=long", "decay=kaplan", "param_count=standard"}, 0.69, 0.72},
      {{"hparams=base", "warmup=short", "decay=kaplan", "param_count=standard"}, 0.59, 0.62},
      {{"hparams=base", "warmup=short", "decay=chinchilla", "param_count=standard"}, 0.56, 0.59},
      {{"hparams=tuned", "warmup=short", "decay=const", "param_count=standard"}, 0.49, 0.50}};
  for (const auto& setup : setups) {
    const auto fit = fit_of("porian_isoflop.csv", setup.where, {.through = Through::akima, .bootstrap = 0});
    EXPECT_GT(value(fit, 0), setup.low) << setup.where[1] << setup.where[2] << setup.where[3];
    EXPECT_LT(value(fit, 0), setup.high) << setup.where[1] << setup.where[2] << setup.where[3];
  }
}

// Hoffmann et al. 2022, table 2: a = 0.49 (0.462 to 0.534). These curves are read off their figure, two budgets of nine left out.
TEST(IsoflopData, AgreesWithHoffmannOnTheirCurves) {
  if (!std::filesystem::exists(data + "isoflop_curves.csv")) GTEST_SKIP() << "no ../shared/scaling/data/isoflop_curves.csv";
  const auto fit = fit_of("isoflop_curves.csv", {"source=ml_scalefit", "qc_outlier=False"}, {});
  EXPECT_EQ(fit.curves.size(), 7U);
  const auto& a = *fit.sizes.parameters.front().interval;
  EXPECT_LT(a.low, 0.534);
  EXPECT_GT(a.high, 0.462);
}

}  // namespace
}  // namespace fitting

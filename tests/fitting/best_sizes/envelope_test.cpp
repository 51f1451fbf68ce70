#include "fitting/best_sizes/envelope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "fitting/best_sizes/loss_curves.h"

namespace fitting {
namespace {

// Runs of k sizes, a factor of two apart, all trained from few tokens to many: alpha = beta = 0.31, A = B.
std::vector<LossCurve> runs_of(int k) {
  std::vector<LossCurve> curves;
  for (int i = 0; i < k; ++i) {
    LossCurve curve{"run" + std::to_string(i), 1e7 * std::pow(2.0, i), {}, {}, {}};
    for (double D = 1e6; D < 1e12; D *= 1.02) {
      curve.C.push_back(6.0 * curve.N * D), curve.D.push_back(D);
      curve.L.push_back(1.7 + 400.0 * std::pow(curve.N, -0.31) + 400.0 * std::pow(D, -0.31));
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

double value(const EnvelopeFit& fit, std::size_t which) { return fit.sizes.parameters[which].value; }

// At A = B a run of N meets the next, of 2N, where D N^-1 is the same for all N: each size is best over an equal stretch of ln C,
// 2 ln 2, and ln N over it is a staircase. The line through a staircase of k steps has a (1 - 1 / k^2) of the slope through its
// corners: cov = h^2 (k^2 - 1) / 12 of the step h in ln N over its stretches, var = h^2 k^2 / 12.
TEST(Envelope, FindsEqualExponentsButForTheStepsOfSizes) {
  const int k = 8;
  const auto fit = fit_envelope(runs_of(k + 2), {.computes = 20000, .bootstrap = 0});
  ASSERT_EQ(fit.sizes.points.size(), static_cast<std::size_t>(k));
  EXPECT_NEAR(value(fit, 0), 0.5 * (1.0 - 1.0 / (k * k)), 2e-4);
  EXPECT_NEAR(value(fit, 0) + value(fit, 1), 1.0, 1e-4);  // D between points is on the curve of C = 6 N D
}

TEST(Envelope, LeavesOutComputesWhereTheBestSizeMayLieBeyondTheRuns) {
  const auto curves = runs_of(6);
  const auto fit = fit_envelope(curves, {.bootstrap = 0});
  for (const auto& point : fit.envelope) {
    EXPECT_GT(point.curve, 0U);
    EXPECT_LT(point.curve, curves.size() - 1);
  }
  ASSERT_EQ(fit.sizes.refused.size(), 1U);
  EXPECT_NE(fit.sizes.refused.front().why.find("smallest or the largest"), std::string::npos);
}

TEST(Envelope, TakesTheLeastLossAtEachCompute) {
  const auto curves = runs_of(6);
  const auto fit = fit_envelope(curves, {.computes = 200, .bootstrap = 0});
  ASSERT_FALSE(fit.envelope.empty());
  for (const auto& point : fit.envelope) {
    for (const auto& curve : curves) EXPECT_LE(point.L, 1e-4 + 1.7 + 400.0 * std::pow(curve.N, -0.31) + 400.0 * std::pow(point.C / (6.0 * curve.N), -0.31));
  }
}

TEST(Envelope, WarnsOfPointsInTheMiddleOfASchedule) {
  const auto early = fit_envelope(runs_of(6), {.bootstrap = 0});
  EXPECT_NE(early.sizes.warnings.front().find("cosine"), std::string::npos);
  // Four lengths of each size: the last 15 % of them cover much of the computes.
  std::vector<LossCurve> ends;
  for (const auto& whole : runs_of(10)) {
    for (double until = 2e6; until < 1e12; until *= 1.15) {
      LossCurve curve{whole.run, whole.N, {}, {}, {}};
      for (std::size_t i = 0; i < whole.D.size() && whole.D[i] <= until; ++i) {
        curve.C.push_back(whole.C[i]), curve.D.push_back(whole.D[i]), curve.L.push_back(whole.L[i]);
      }
      if (curve.C.size() > 1) ends.push_back(std::move(curve));
    }
  }
  const auto late = fit_envelope(ends, {.last = 0.15, .bootstrap = 0});
  for (const auto& warning : late.sizes.warnings) EXPECT_EQ(warning.find("cosine"), std::string::npos) << warning;
  EXPECT_NEAR(value(late, 0), 0.5 * (1.0 - 1.0 / 64.0), 5e-3);
}

TEST(Envelope, NeedsSizesOnEitherSide) {
  EXPECT_THROW(fit_envelope(runs_of(2), {}), core::InputError);
  EXPECT_THROW(fit_envelope(runs_of(3), {}), core::InputError);  // only one of them has both neighbours
}

// At A = B the best size has N = D. Where a run of 8e7 has seen 8e6 tokens, it loses by 4 % to smaller ones; a point of noise that
// is 7 % low wins alone, its mean with its neighbours does not.
TEST(Envelope, SmoothsNoise) {
  auto curves = runs_of(6);
  auto& run = curves[3];
  ASSERT_EQ(run.N, 8e7);
  const auto at = static_cast<std::size_t>(std::lround(std::log(8.0) / std::log(1.02)));
  run.L[at] *= 0.93;
  const auto wins = [&](const EnvelopeFit& fit) {
    return std::any_of(fit.envelope.begin(), fit.envelope.end(), [&](const auto& point) { return point.curve == 3 && std::fabs(point.C / run.C[at] - 1.0) < 0.02; });
  };
  EXPECT_TRUE(wins(fit_envelope(curves, {.bootstrap = 0})));
  EXPECT_FALSE(wins(fit_envelope(curves, {.smooth = 21, .bootstrap = 0})));
}

TEST(LossCurves, AreReadByRun) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "loss_curves";
  std::filesystem::create_directories(folder);
  const auto file = folder / "curves.csv";
  std::ofstream(file) << "run,n_params,tokens,loss\na,1e7,2e9,3\na,1e7,1e9,4\nb,2e7,1e9,3.5\na,1e7,2e9,3\nb,2e7,2e9,nan\nb,2e7,4e9,2.9\nc,4e7,1e9,3.4\n";
  const auto read = read_loss_curves({file}, {});
  ASSERT_EQ(read.curves.size(), 2U);
  EXPECT_EQ(read.curves[0].run, "a");
  EXPECT_EQ(read.curves[0].L, (std::vector<double>{4.0, 3.0}));
  EXPECT_EQ(read.curves[0].C, (std::vector<double>{6e16, 1.2e17}));
  EXPECT_EQ(read.curves[1].D, (std::vector<double>{1e9, 4e9}));
  ASSERT_EQ(read.observations.dropped.size(), 3U);
  EXPECT_EQ(read.observations.dropped[0].row, "curves.csv line 6");
  EXPECT_EQ(read.observations.dropped[1].row, "curves.csv line 5");
  EXPECT_EQ(read.observations.dropped[2].why, "has one loss, expected several");
}

TEST(LossCurves, NeedTheirColumns) {
  const auto file = std::filesystem::path(testing::TempDir()) / "no_loss.csv";
  std::ofstream(file) << "run,n_params,tokens\na,1e7,2e9\n";
  EXPECT_THROW(read_loss_curves({file}, {}), core::InputError);
}

// GPT-3's runs share one schedule of 300e9 tokens: all of the envelope lies in the middle of it, as Kaplan et al. 2020 had it.
TEST(EnvelopeData, WarnsOfTheSharedScheduleOfGpt3) {
  const std::string file = FORETRAIN_SOURCE_DIR "/../shared/scaling/data/gpt3_train_curves.csv";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  core::ObservationOptions reading;
  reading.where = {"split=train"};
  const auto fit = fit_envelope(read_loss_curves({file}, reading).curves, {.bootstrap = 0});
  EXPECT_EQ(fit.sizes.rows, 8);
  EXPECT_NE(fit.sizes.warnings.front().find("before the last 15 %"), std::string::npos);
}

}  // namespace
}  // namespace fitting

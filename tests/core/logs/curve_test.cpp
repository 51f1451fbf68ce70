// The end and the health of a run by its losses.
#include "core/logs/curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace core {
namespace {

// A run of `points` whose loss at step s is loss(s).
template <class Loss>
Curve curve_of(int points, const Loss& loss) {
  Curve curve;
  for (int step = 1; step <= points; ++step) curve.add(step, loss(step));
  return curve;
}

TEST(Curve, EndsAtTheMeanOfItsLastPoints) {
  const auto falls = [](int step) { return 10.0 - 0.001 * step; };
  // 1 % of 2000 points: steps 1981 to 2000, whose mean is 1990.5.
  EXPECT_NEAR(curve_of(2000, falls).final_loss(LossKind::training), 10.0 - 1.9905, 1e-12);
  // Ten at least: 291 to 300. A tenth at most: 19 and 20.
  EXPECT_NEAR(curve_of(300, falls).final_loss(LossKind::training), 10.0 - 0.2955, 1e-12);
  EXPECT_NEAR(curve_of(20, falls).final_loss(LossKind::training), 10.0 - 0.0195, 1e-12);
  // Evaluations hardly vary: the last, or 1 %.
  EXPECT_NEAR(curve_of(20, falls).final_loss(LossKind::evaluation), 10.0 - 0.020, 1e-12);
  EXPECT_NEAR(curve_of(400, falls).final_loss(LossKind::evaluation), 10.0 - 0.3985, 1e-12);
  EXPECT_TRUE(std::isnan(Curve().final_loss(LossKind::training)));
}

TEST(Curve, EndsTheSameWithASpike) {
  const auto spike = [](int step) { return step == 198 ? 50.0 : 3.0; };
  EXPECT_EQ(curve_of(200, spike).final_loss(LossKind::training), 3.0);
}

TEST(Curve, TellsRunsThatDiverged) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(curve_of(100, [](int step) { return 12.0 - 0.09 * step; }).why_diverged(), "");
  EXPECT_EQ(curve_of(5, [&](int step) { return step == 5 ? nan : 3.0; }).why_diverged(),
            "diverged: its loss at step 5 is not finite");
  // From 9 to 4 and back to 6: two fifths of the fall are lost.
  EXPECT_EQ(curve_of(100, [](int step) { return step < 40   ? 9.0
                                                : step < 80 ? 4.0
                                                            : 6.0; })
                .why_diverged(),
            "diverged: its loss ends at 6, its lowest was 4");
  // A spike that heals, and noise at the end of a run that hardly falls.
  EXPECT_EQ(curve_of(100, [](int step) { return step == 50 ? 9.0 : 4.0; }).why_diverged(), "");
  EXPECT_EQ(curve_of(100, [](int step) { return step % 2 == 0 ? 2.40 : 2.45; }).why_diverged(), "");
  // Some losses that are not finite are counted, but a run that goes on is well.
  const auto gaps = curve_of(100, [&](int step) { return step % 10 == 5 ? nan : 3.0; });
  EXPECT_EQ(gaps.why_diverged(), "");
  EXPECT_EQ(gaps.not_finite(), 10U);
  EXPECT_EQ(gaps.final_loss(LossKind::training), 3.0);
}

TEST(Curve, TellsRunsThatDidNotFinish) {
  Curve curve;
  for (int step = 10; step <= 100; step += 10) curve.add(step, 3.0);
  EXPECT_EQ(curve.why_unfinished({}), "");
  EXPECT_EQ(curve.why_unfinished(100), "");
  EXPECT_EQ(curve.why_unfinished(109), "");  // the next line would be 110
  EXPECT_EQ(curve.why_unfinished(111), "unfinished: ends at step 100 of 111");
  // A cosine that was stopped half way is at (1 + cos(pi x)) / 2 of its peak: 65 % at x = 0.4, 10 %
  // at 0.8.
  const auto stopped_at = [&](double x) {
    Curve run = curve;
    for (double part = 0.0; part <= x + 1e-9; part += 0.1)
      run.add_learning_rate(3e-4 * (1 + std::cos(3.14159265358979 * part)) / 2);
    return run.why_unfinished({});
  };
  EXPECT_EQ(stopped_at(0.4), "unfinished: its learning rate is still falling, at 65 % of its peak");
  EXPECT_EQ(stopped_at(0.8), "");
}

TEST(Curve, ForgetsWhatARestartDoesAgain) {
  Curve curve;
  for (int step = 1; step <= 100; ++step) curve.add(step, 9.0);
  for (int step = 51; step <= 120; ++step) curve.add(step, 3.0);
  EXPECT_EQ(curve.went_back(), 1U);
  EXPECT_EQ(curve.last_step(), 120.0);
  EXPECT_EQ(curve.final_loss(LossKind::training), 3.0);
  // Ranks that print the same step are no restart.
  Curve ranks;
  for (const int step : {1, 1, 2, 2, 3, 3}) ranks.add(step, 3.0);
  EXPECT_EQ(ranks.went_back(), 0U);
  EXPECT_EQ(ranks.points(), 3U);
}

}  // namespace
}  // namespace core

#include "fitting/regression.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fitting/best_sizes/akima.h"

namespace fitting {
namespace {

TEST(Regression, FindsALine) {
  const auto line = line_through({1.0, 2.0, 4.0}, {5.0, 7.0, 11.0});
  EXPECT_DOUBLE_EQ(line.slope, 2.0);
  EXPECT_DOUBLE_EQ(line.intercept, 3.0);
  EXPECT_DOUBLE_EQ(line.r2, 1.0);
}

// A weight of two is the point twice.
TEST(Regression, CountsAPointOfWeightTwoTwice) {
  const auto weighted = line_through({0.0, 1.0, 2.0}, {0.0, 1.0, 4.0}, {1.0, 2.0, 1.0}), twice = line_through({0.0, 1.0, 1.0, 2.0}, {0.0, 1.0, 1.0, 4.0});
  EXPECT_NEAR(weighted.slope, twice.slope, 1e-14);
  EXPECT_NEAR(weighted.intercept, twice.intercept, 1e-14);
  const auto curve = parabola_through({0.0, 1.0, 2.0, 3.0}, {3.0, 1.0, 1.5, 5.0}, {1.0, 1.0, 2.0, 1.0});
  const auto more = parabola_through({0.0, 1.0, 2.0, 2.0, 3.0}, {3.0, 1.0, 1.5, 1.5, 5.0});
  EXPECT_NEAR(curve.vertex, more.vertex, 1e-13);
  EXPECT_NEAR(curve.half_curvature, more.half_curvature, 1e-13);
}

// Far from 0, as logarithms of sizes are, and on an uneven grid.
TEST(Regression, FindsAParabolaToTheLastDigits) {
  std::vector<double> x, y;
  for (const double step : {-1.3, -0.4, 0.1, 0.2, 1.7}) {
    x.push_back(20.7 + step);
    y.push_back(2.5 + 0.03 * (x.back() - 20.9) * (x.back() - 20.9));
  }
  const auto parabola = parabola_through(x, y);
  EXPECT_NEAR(parabola.vertex, 20.9, 1e-11);
  EXPECT_NEAR(parabola.value, 2.5, 1e-13);
  EXPECT_NEAR(parabola.half_curvature, 0.03, 1e-12);
}

TEST(Regression, HasNoParabolaThroughTwoValues) {
  EXPECT_FALSE(std::isfinite(parabola_through({1.0, 1.0, 2.0, 2.0}, {1.0, 2.0, 3.0, 4.0}).half_curvature));
}

// On an even grid the slopes are a parabola's own: the weights of the lines on either side are equal.
TEST(Akima, IsTheParabolaOnAnEvenGrid) {
  std::vector<double> x, y;
  for (int i = 0; i < 6; ++i) {
    x.push_back(i);
    y.push_back((i - 2.3) * (i - 2.3));
  }
  const Akima curve(x, y);
  EXPECT_NEAR(curve.minimum(), 2.3, 1e-12);
  EXPECT_NEAR(curve.at(0.7), 1.6 * 1.6, 1e-12);
}

// A flat run of points stays flat beside a step, where a cubic spline would swing: Akima 1970, section 1.
TEST(Akima, DoesNotSwingBesideAStep) {
  const Akima curve({0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0});
  for (double x = 0.0; x <= 2.0; x += 0.125) EXPECT_DOUBLE_EQ(curve.at(x), 0.0) << x;
  for (double x = 0.0; x <= 6.0; x += 0.125) {
    EXPECT_GE(curve.at(x), -1e-15) << x;
    EXPECT_LE(curve.at(x), 1.0 + 1e-15) << x;
  }
}

TEST(Akima, TakesTheMeanOfPointsThatStandOverEachOther) {
  const Akima curve({2.0, 0.0, 1.0, 1.0, 3.0}, {4.0, 0.0, 1.0, 3.0, 6.0});
  EXPECT_DOUBLE_EQ(curve.at(1.0), 2.0);
  EXPECT_DOUBLE_EQ(curve.at(1.5), 3.0);
  EXPECT_DOUBLE_EQ(curve.minimum(), 0.0);
}

}  // namespace
}  // namespace fitting

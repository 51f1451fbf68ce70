// Runs read along their steps.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/logs/curve.h"
#include "core/logs/observations.h"

namespace core {
namespace {

double loss_at(double step) { return 2.0 + 30.0 / std::sqrt(step); }

TEST(Along, StretchesHoldEveryPointOnceAndStayFew) {
  for (const int steps : {1, 100, 511, 512, 513, 5000, 100000}) {
    Curve curve;
    double sum = 0.0;
    for (int step = 1; step <= steps; ++step) curve.add(step, 1.0 + step % 7), sum += 1.0 + step % 7;
    const auto along = curve.along();
    EXPECT_LE(along.size(), 512u);
    EXPECT_GE(along.size(), std::min<std::size_t>(128, static_cast<std::size_t>(steps)));
    double mean = 0.0;  // stretches of as many points each, but for the last
    for (std::size_t i = 0; i + 1 < along.size(); ++i) EXPECT_LT(along[i].first, along[i + 1].first);
    for (const auto& [step, loss] : along) mean += loss / static_cast<double>(along.size());
    EXPECT_NEAR(mean, sum / steps, 0.2);
  }
}

TEST(Along, ForgetsWhatIsDoneAgain) {
  Curve curve;
  for (int step = 1; step <= 100; ++step) curve.add(step, 9.0);
  for (int step = 51; step <= 100; ++step) curve.add(step, 3.0);
  for (const auto& [step, loss] : curve.along()) EXPECT_EQ(loss, step <= 50.0 ? 9.0 : 3.0);
  EXPECT_EQ(curve.along().size(), 100u);
}

TEST(Along, GivesTokensInProportion) {
  std::string table = "step,loss\n";
  for (int step = 1; step <= 300; ++step) table += fmt::format("{},{}\n", step, loss_at(step));
  ObservationOptions options;
  options.wanted = {"D", "L"};
  options.tokens_per_step = 1e6;
  options.along = true;
  const auto points = parse_observations(table, "run.csv", options);
  ASSERT_EQ(points.size(), 298u);  // less the first hundredth: steps 1 and 2
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points.values[0][i], 1e6 * static_cast<double>(i + 3));
    EXPECT_NEAR(points.values[1][i], loss_at(static_cast<double>(i + 3)), 1e-5);
  }
}

}  // namespace
}  // namespace core

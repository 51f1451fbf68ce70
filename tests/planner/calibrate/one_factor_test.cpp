#include "planner/calibrate/one_factor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace {

using planner::Observations;

Observations::Row row(const std::string& source, const std::string& configuration) {
  return {source, 1.0, false, configuration, {}};
}

// Times off by 1.1, 1.2 and 1.5 in one source: after the first's factor the second is off by 1.2 / 1.1, and so on.
TEST(OneFactor, CalibratesARowByEachOtherOfItsSource) {
  const std::vector<Observations::Row> rows = {row("a", "1"), row("a", "2"), row("a", "3"), row("b", "1")};
  const auto errors = planner::errors_after_one_factor(
      rows, {std::log(1.1), std::log(1.2), std::log(1.5), std::log(2.0)});
  const auto between = [](double one, double other) { return (std::abs(one - 1.0) + std::abs(other - 1.0)) / 2.0; };
  EXPECT_NEAR(errors[0].value(), between(1.1 / 1.2, 1.1 / 1.5), 1e-12);
  EXPECT_NEAR(errors[1].value(), between(1.2 / 1.1, 1.2 / 1.5), 1e-12);
  EXPECT_NEAR(errors[2].value(), between(1.5 / 1.1, 1.5 / 1.2), 1e-12);
  EXPECT_FALSE(errors[3].has_value());  // alone in its source
}

TEST(OneFactor, NeverCalibratesAConfigurationByARepeatOfIt) {
  const std::vector<Observations::Row> rows = {row("a", "1"), row("a", "1"), row("a", "2")};
  const auto errors = planner::errors_after_one_factor(rows, {0.0, 0.0, std::log(1.3)});
  EXPECT_NEAR(errors[0].value(), 1.0 - 1.0 / 1.3, 1e-12);
  EXPECT_NEAR(errors[1].value(), 1.0 - 1.0 / 1.3, 1e-12);
  EXPECT_NEAR(errors[2].value(), 0.3, 1e-12);
}

}  // namespace

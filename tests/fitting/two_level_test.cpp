#include "fitting/two_level.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace {

using fitting::ValueGroup;

constexpr double normal_like = 1e6;  // degrees of freedom

ValueGroup group_of(std::vector<double> values, double weight = 1.0) {
  const std::vector<double> weights(values.size(), 1.0);
  return {std::move(values), weights, weight};
}

TEST(TwoLevel, FindsTheSpreadsOfBalancedGroupsAsTheFormulasDo) {
  // Means -1, 0, 1: variance 2 / (3 - 1) = 1. Values of a group +-0.1 about its mean: variance 0.02 / (2 - 1).
  const auto e = fitting::two_level({group_of({-1.1, -0.9}), group_of({-0.1, 0.1}), group_of({0.9, 1.1})}, normal_like, {});
  EXPECT_NEAR(e.centre, 0.0, 1e-9);
  EXPECT_NEAR(e.between, 1.0, 1e-5);
  EXPECT_NEAR(e.within, std::sqrt(0.02), 1e-12);
  EXPECT_NEAR(e.groups, 3.0, 1e-12);
}

TEST(TwoLevel, TakesNormalQuantilesWhereDegreesAreMany) {
  // 1.6449 is the 95 % quantile of the normal distribution; 1 + 1/3 for the centre of three groups.
  const fitting::TwoLevel e{0.2, 0.3, 0.4, 3.0};
  const auto interval = fitting::interval_of_new_group(e, normal_like, 0.9);
  const double half = 1.6449 * std::sqrt(0.09 * 4.0 / 3.0 + 0.16);
  EXPECT_NEAR(interval.low, 0.2 - half, 1e-4);
  EXPECT_NEAR(interval.high, 0.2 + half, 1e-4);
}

TEST(TwoLevel, TakesStudentsQuantileBetweenGroups) {
  // 2.1318 is the 95 % quantile of Student's t with 4 degrees of freedom (table).
  const fitting::TwoLevel e{0.0, 1.0, 0.0, 1e12};
  EXPECT_NEAR(fitting::interval_of_new_group(e, 4.0, 0.9).high, 2.1318, 1e-4);
}

TEST(TwoLevel, IsDrawnLessByAGroupFarOutThanANormalDistributionIs) {
  const std::vector<ValueGroup> groups{group_of({-0.1}), group_of({0.0}), group_of({0.1}), group_of({0.0}), group_of({2.0})};
  const auto robust = fitting::two_level(groups, 4.0, {}), normal = fitting::two_level(groups, normal_like, {});
  EXPECT_LT(robust.centre, 0.5 * normal.centre);
  EXPECT_LT(robust.between, normal.between);
}

TEST(TwoLevel, DrawsOneGroupToItsPriorByTheirNumbers) {
  // Three groups of the prior at 0 and one at 0.4 under a normal distribution: 0.1.
  const fitting::TwoLevelPrior prior{{0.0, 0.2, 0.1, 10.0}, 3.0};
  const auto e = fitting::two_level({group_of({0.4})}, normal_like, prior);
  EXPECT_NEAR(e.centre, 0.1, 1e-5);
  EXPECT_NEAR(e.between, std::sqrt((3 * 0.04 + 3 * 0.01 + 0.09) / 4.0), 1e-5);
  EXPECT_NEAR(e.within, 0.1, 1e-12);
  EXPECT_EQ(fitting::two_level({}, 4.0, prior).between, 0.2);
}

TEST(TwoLevel, IsWiderForMoreSpreadAndForMoreOfTheValues) {
  const auto width = [](const fitting::TwoLevel& e, double share) {
    const auto interval = fitting::interval_of_new_group(e, 4.0, share);
    return interval.high - interval.low;
  };
  const fitting::TwoLevel e{0.0, 0.1, 0.1, 5.0};
  EXPECT_LT(width(e, 0.8), width(e, 0.9));
  EXPECT_LT(width(e, 0.9), width({0.0, 0.2, 0.1, 5.0}, 0.9));
  EXPECT_LT(width(e, 0.9), width({0.0, 0.1, 0.2, 5.0}, 0.9));
  EXPECT_LT(width(e, 0.9), width({0.0, 0.1, 0.1, 2.0}, 0.9));
}

TEST(TwoLevel, CoversNewGroupsAsOftenAsItSays) {
  // Made of known spreads: 90 % of the values of groups that were left out. 4000 trials: standard error below 1 %.
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::student_t_distribution<double> student(4.0);
  const auto draw = [&](double group) { return 0.1 + 0.15 * group + 0.08 * normal(random); };
  int covered = 0;
  constexpr int trials = 4000;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<ValueGroup> groups;
    for (int g = 0; g < 12; ++g) {
      const double group = student(random);
      groups.push_back(group_of({draw(group), draw(group), draw(group), draw(group)}));
    }
    const auto interval = fitting::interval_of_new_group(fitting::two_level(groups, 4.0, {}), 4.0, 0.9);
    const double value = draw(student(random));
    covered += interval.low <= value && value <= interval.high;
  }
  EXPECT_NEAR(covered / double{trials}, 0.9, 0.03);
}

TEST(WeightedQuantile, IsTheMedianOfEqualWeightsAndFollowsHeavyOnes) {
  EXPECT_DOUBLE_EQ(fitting::weighted_quantile({3, 1, 2}, {1, 1, 1}, 0.5), 2.0);
  EXPECT_NEAR(fitting::weighted_quantile({1, 2}, {1, 1e9}, 0.5), 2.0, 1e-6);
  EXPECT_DOUBLE_EQ(fitting::weighted_quantile({1, 2}, {1, 1}, 0.5), 1.5);
  EXPECT_DOUBLE_EQ(fitting::weighted_quantile({1, 2}, {1, 1}, 0.99), 2.0);
}

}  // namespace

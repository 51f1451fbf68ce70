#include "simulator/breakdown.h"

#include <gtest/gtest.h>

namespace {

using simulator::Activity;
using simulator::Breakdown;
using simulator::differing_terms;
using simulator::index_of;

Breakdown of(std::initializer_list<std::pair<Activity, double>> parts) {
  Breakdown b{};
  for (const auto& [activity, seconds] : parts) b[index_of(activity)] = seconds;
  return b;
}

TEST(DifferingTerms, NamesWhatMakesTheDifferenceLargestSavingFirst) {
  const auto slower = of({{Activity::compute, 4.0}, {Activity::bubble, 1.0}, {Activity::tp_exposed, 0.5}, {Activity::optimizer, 0.01}});
  const auto faster = of({{Activity::compute, 4.1}, {Activity::bubble, 0.3}, {Activity::tp_exposed, 0.2}, {Activity::optimizer, 0.02}});
  const auto terms = differing_terms(slower, faster);
  // |differences| sum to 1.11: the optimizer's 0.01 and compute's 0.1 are less than a tenth of it.
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(terms[0].first, Activity::bubble);
  EXPECT_NEAR(terms[0].second, -0.7, 1e-12);
  EXPECT_EQ(terms[1].first, Activity::tp_exposed);
  EXPECT_NEAR(terms[1].second, -0.3, 1e-12);
}

TEST(DifferingTerms, SaysWhatIsPaidAsWell) {
  const auto terms = differing_terms(of({{Activity::bubble, 1.0}}), of({{Activity::cp_exposed, 0.4}}));
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(terms[0].first, Activity::bubble);
  EXPECT_EQ(terms[1].first, Activity::cp_exposed);
  EXPECT_NEAR(terms[1].second, 0.4, 1e-12);
}

TEST(DifferingTerms, AreNoneBetweenEqualSteps) {
  const auto same = of({{Activity::compute, 2.0}});
  EXPECT_TRUE(differing_terms(same, same).empty());
}

}  // namespace

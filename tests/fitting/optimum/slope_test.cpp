#include "fitting/optimum/slope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fitting/optimum/power_terms.h"
#include "fitting/optimum/sign_change.h"

namespace fitting {
namespace {

Slope of(const std::string& text, const std::vector<Slope>& symbols) {
  std::vector<Slope> nodes;
  return slope_of(Formula::parse(text, "test"), symbols, nodes);
}

TEST(Slope, FollowsTheRulesOfCalculus) {
  const std::vector<Slope> xy = {{3.0, {1.0, 0.0}}, {2.0, {0.0, 1.0}}};
  const auto slopes = of("x * y + x / y - exp(y) + log(x) + sqrt(x) + x^y + y^3 - abs(0 - x)", xy);
  EXPECT_NEAR(slopes.value, 6.0 + 1.5 - std::exp(2.0) + std::log(3.0) + std::sqrt(3.0) + 9.0 + 8.0 - 3.0, 1e-12);
  EXPECT_NEAR(slopes.along[0], 2.0 + 0.5 + 1.0 / 3.0 + 0.5 / std::sqrt(3.0) + 2.0 * 3.0 - 1.0, 1e-12);
  EXPECT_NEAR(slopes.along[1], 3.0 - 0.75 - std::exp(2.0) + 9.0 * std::log(3.0) + 3.0 * 4.0, 1e-12);
}

TEST(Slope, TakesTheSideOfAKinkThatHolds) {
  EXPECT_EQ(of("min(x, 5)", {{3.0, {1.0, 0.0}}}).along[0], 1.0);
  EXPECT_EQ(of("min(x, 2)", {{3.0, {1.0, 0.0}}}).along[0], 0.0);
  EXPECT_EQ(of("max(x, 2)", {{3.0, {1.0, 0.0}}}).along[0], 1.0);
}

// What stands still has no slope, however steep the function is there: log2 of a group of one, bits without end.
TEST(Slope, OfWhatStandsStillIsZero) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto slopes = of("x * log2(g)^0.8 + x * (1 - exp(0 - p / 2.6)) + min(u, x)",
                         {{3.0, {1.0, 0.0}}, {1.0, {}}, {inf, {}}, {inf, {}}});
  EXPECT_DOUBLE_EQ(slopes.value, 6.0);
  EXPECT_DOUBLE_EQ(slopes.along[0], 2.0);
}

std::optional<TwoTerms> terms(const std::string& text, const std::vector<double>& symbols = {}) {
  return two_terms(Formula::parse(text, "test"), symbols.empty() ? std::vector<double>(2, 0.0) : symbols);
}

TEST(PowerTerms, AreReadOffAFormula) {
  const auto found = terms("1.5 + 8 / N^0.25 + 2 * D^(0 - 0.5) * 3 - 0.5");
  ASSERT_TRUE(found.has_value());
  EXPECT_DOUBLE_EQ(found->E, 1.0);
  EXPECT_DOUBLE_EQ(found->A, 8.0);
  EXPECT_DOUBLE_EQ(found->alpha, 0.25);
  EXPECT_DOUBLE_EQ(found->B, 6.0);
  EXPECT_DOUBLE_EQ(found->beta, 0.5);
}

TEST(PowerTerms, OfProductsAndPowersOfOneAnother) {
  const auto found = terms("(2 * N * exp(log(0.5)))^(0 - 0.5) + sqrt(4 / D)");
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(found->A, 1.0, 1e-15);
  EXPECT_DOUBLE_EQ(found->alpha, 0.5);
  EXPECT_DOUBLE_EQ(found->B, 2.0);
}

TEST(PowerTerms, AreNothingElse) {
  EXPECT_FALSE(terms("1 / N + 1 / D + N / D").has_value());        // a term of both
  EXPECT_FALSE(terms("1 / (N + 5) + 1 / D").has_value());          // no power
  EXPECT_FALSE(terms("1 / N + 1 / N^2 + 1 / D").has_value());      // two of one
  EXPECT_FALSE(terms("1 / N + D").has_value());                    // rises
  EXPECT_FALSE(terms("(1 / N + 1 / D)^0.5").has_value());
  EXPECT_FALSE(terms("1 / min(N, 5) + 1 / D").has_value());
  EXPECT_FALSE(terms("3 / N + 0 * D").has_value());
}

TEST(SignChange, IsFoundToTheLastDigits) {
  EXPECT_NEAR(sign_change(0.0, 2.0, [](double x) { return x * x - 2.0; }), std::sqrt(2.0), 1e-15);
  EXPECT_NEAR(sign_change(2.0, 0.0, [](double x) { return 1.0 - x; }), 1.0, 1e-15);                              // from above
  EXPECT_NEAR(sign_change(0.0, 10.0, [](double x) { return x < 3.0 ? -1e9 : 1e-9; }), 3.0, 1e-14);               // a jump
  EXPECT_NEAR(sign_change(0.0, 10.0, [](double x) { return x < 3.0 ? std::nan("") : 1.0; }), 3.0, 1e-14);        // an edge
  int calls = 0;
  sign_change(-50.0, 50.0, [&](double x) { ++calls; return std::expm1(x - 7.0); });
  EXPECT_LT(calls, 120);
}

}  // namespace
}  // namespace fitting

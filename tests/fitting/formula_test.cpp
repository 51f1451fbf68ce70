#include "fitting/formula.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace fitting {
namespace {

double of(const std::string& text, const std::vector<double>& symbols = {}) {
  return Formula::parse(text, "test").value(symbols);
}

std::string complaint(const std::string& text) {
  try {
    Formula::parse(text, "--formula");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Formula, BindsOperatorsAsMathematicsDoes) {
  EXPECT_DOUBLE_EQ(of("1 + 2 * 3"), 7.0);
  EXPECT_DOUBLE_EQ(of("2 ^ 3 ^ 2"), 512.0);
  EXPECT_DOUBLE_EQ(of("-2 ^ 2"), -4.0);
  EXPECT_DOUBLE_EQ(of("2 ^ -1"), 0.5);
  EXPECT_DOUBLE_EQ(of("8 / 4 / 2"), 1.0);
  EXPECT_DOUBLE_EQ(of("(1 + 2) * 3"), 9.0);
  EXPECT_DOUBLE_EQ(of("1.5e3 - 0.5"), 1499.5);
}

TEST(Formula, KnowsItsFunctions) {
  EXPECT_DOUBLE_EQ(of("log(exp(2)) + log10(1000) + log2(8) + sqrt(16) + abs(-1)"), 2.0 + 3.0 + 3.0 + 4.0 + 1.0);
  EXPECT_DOUBLE_EQ(of("min(2, 3) + max(2, 3) + pow(2, 5)"), 2.0 + 3.0 + 32.0);
}

TEST(Formula, TakesSymbolsInOrderOfFirstUse) {
  const auto formula = Formula::parse("E + A / N^alpha", "test");
  EXPECT_EQ(formula.symbols(), (std::vector<std::string>{"E", "A", "N", "alpha"}));
  EXPECT_DOUBLE_EQ(formula.value(std::vector<double>{1.0, 100.0, 16.0, 0.5}), 1.0 + 100.0 / 4.0);
}

TEST(Formula, BindsNamesBeforeItsValue) {
  const auto formula = Formula::parse("R = D / U - 1; D' = U * (1 + R); 2 * D'", "test");
  EXPECT_EQ(formula.bindings(), (std::vector<std::string>{"R", "D'"}));
  EXPECT_EQ(formula.symbols(), (std::vector<std::string>{"D", "U"}));
  const std::vector<double> at = {12.0, 3.0};
  EXPECT_DOUBLE_EQ(formula.value(at), 24.0);
  EXPECT_EQ(formula.binding_values(at), (std::vector<double>{3.0, 12.0}));
}

TEST(Formula, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(complaint("1 +"), "--formula: at character 4: found the end, expected a number, a name or (");
  EXPECT_EQ(complaint("(1 + 2"), "--formula: at character 7: found the end, expected \")\"");
  EXPECT_EQ(complaint("2 N"), "--formula: at character 3: found \"N\", expected an operator or the end");
  EXPECT_NE(complaint("foo(1)").find("expected one of exp log"), std::string::npos);
  EXPECT_NE(complaint("a = 1; a = 2; a").find("bound once"), std::string::npos);
  EXPECT_NE(complaint(std::string(1000, '(')).find("fewer levels"), std::string::npos);
  EXPECT_NE(complaint("").find("found the end"), std::string::npos);
}

TEST(Formula, IsNotANumberWhereItIsNotDefined) {
  EXPECT_TRUE(std::isnan(of("log(0 - x)", {1.0})));
  EXPECT_TRUE(std::isinf(of("1 / x", {0.0})));
}

}  // namespace
}  // namespace fitting

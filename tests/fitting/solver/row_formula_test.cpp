#include "fitting/solver/row_formula.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace fitting {
namespace {

Law law_with(const std::string& formula, const std::vector<std::string>& parameters) {
  Law law{.name = "test", .title = "", .source = "", .formula = formula, .variables = {{"x", ""}, {"y", ""}}, .parameters = {}};
  for (const auto& name : parameters) law.parameters.push_back({name, -10, 10, {1}});
  return law;
}

// More rows than one block of them.
std::vector<std::vector<double>> columns_of(std::size_t rows) {
  std::vector<std::vector<double>> columns(2);
  for (std::size_t i = 0; i < rows; ++i) {
    columns[0].push_back(1.5 + 0.01 * static_cast<double>(i));
    columns[1].push_back(4.0 - 0.012 * static_cast<double>(i % 250));
  }
  return columns;
}

TEST(RowFormula, DerivativesAreThoseOfCentralDifferences) {
  const auto columns = columns_of(300);
  for (const std::string formula :
       {"p * x + q - y", "p / x - x / q * y / (p * q)", "x^p + p^x + (p + x)^q + q^p", "exp(p * x / 4) * log(q + x) - sqrt(p * y)",
        "abs(p - x) + min(p * x, q * y) + max(p * x, q + y)", "-(p * log2(y))^q / log10(x + q)", "G = (p / q)^(1 / (p + q)); G * x^(G / q) + y"}) {
    const RowFormula rows(law_with(formula, {"p", "q"}), columns, columns[0].size());
    const std::vector<double> at = {2.007, 1.3};
    std::vector<double> values, jacobian;
    rows.evaluate(at, values, &jacobian);
    ASSERT_EQ(jacobian.size(), 2 * values.size());
    for (std::size_t j = 0; j < 2; ++j) {
      constexpr double step = 1e-6;
      auto low = at, high = at;
      low[j] -= step, high[j] += step;
      std::vector<double> below, above;
      rows.evaluate(low, below, nullptr);
      rows.evaluate(high, above, nullptr);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double slope = (above[i] - below[i]) / (2.0 * step);
        EXPECT_NEAR(jacobian[2 * i + j], slope, 1e-6 * std::max(1.0, std::fabs(slope))) << formula << " row " << i;
      }
    }
  }
}

TEST(RowFormula, ValuesAreThoseOfTheFormula) {
  const auto columns = columns_of(300);
  const auto text = "G = (p / q)^(1 / (p + q)); min(G * x^p, exp(-y)) + 2^x / log(y + q) - abs(-x)";
  const RowFormula rows(law_with(text, {"p", "q"}), columns, columns[0].size());
  std::vector<double> values;
  rows.evaluate({2.0, 1.3}, values, nullptr);
  const double G = std::pow(2.0 / 1.3, 1.0 / 3.3);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = columns[0][i], y = columns[1][i];
    EXPECT_NEAR(values[i], std::min(G * std::pow(x, 2.0), std::exp(-y)) + std::pow(2.0, x) / std::log(y + 1.3) - x, 1e-12);
  }
}

// U / 0 is infinite in the branch that min does not take.
TEST(RowFormula, BranchesNotTakenAddNothing) {
  const std::vector<std::vector<double>> columns = {{0.0, 2.0}, {3.0, 3.0}};
  const RowFormula rows(law_with("min(p * y, p / x)", {"p"}), columns, 2);
  std::vector<double> values, jacobian;
  rows.evaluate({2.0}, values, &jacobian);
  EXPECT_EQ(values, (std::vector<double>{6.0, 1.0}));
  EXPECT_EQ(jacobian, (std::vector<double>{3.0, 0.5}));
}

}  // namespace
}  // namespace fitting

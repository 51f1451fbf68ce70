// Published constants against values that were computed from them elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fitting/fitted_law.h"
#include "fitting/optimum/optimum.h"
#include "tests/fitting/laws_golden.h"

namespace fitting {
namespace {

using Point = std::map<std::string, double>;

double value_of(const FittedLaw& law, const Point& at) {
  return LawFunction(law.law).value(law.parameters, variables_of(law.law, at));
}

double value_of(const std::string& set, const Point& at) { return value_of(fitted_law(set), at); }

double binding_of(const std::string& set, const std::string& name, const Point& at) {
  const auto law = fitted_law(set);
  for (const auto& [binding, value] : LawFunction(law.law).bindings(law.parameters, variables_of(law.law, at))) {
    if (binding == name) return value;
  }
  return std::nan("");
}

bool of_an_optimum(const GoldenValue& row) {
  static const std::vector<std::string> those = {"N_opt", "D_opt", "L_opt", "exponent",
                                                 "N_target", "D_target", "cost_ratio", "best bits over gamma"};
  return std::find(those.begin(), those.end(), row.quantity) != those.end();
}

#define EXPECT_RELATIVE(found, expected, tolerance) EXPECT_NEAR((found) / (expected), 1.0, tolerance)

TEST(Golden, LawsAtAPoint) {
  std::size_t rows = 0;
  for (const auto& row : golden_values()) {
    if (of_an_optimum(row)) continue;
    ++rows;
    const double found = row.quantity == "value" ? value_of(row.set, row.at) : binding_of(row.set, row.quantity, row.at);
    EXPECT_RELATIVE(found, row.value, 1e-9) << row.text();
  }
  EXPECT_EQ(rows, 50U);
}

// Closed forms to 1e-9; what is searched to 1e-6, its local exponent (which depends on the step) to 1e-4.
TEST(Golden, ComputeOptima) {
  std::size_t rows = 0;
  for (const auto& row : golden_values()) {
    if (row.at.count("C") == 0 || !of_an_optimum(row)) continue;
    ++rows;
    OptimumQuestion question;
    question.flops = row.at.at("C");
    const auto found = optimum(fitted_law(row.set), question);
    ASSERT_TRUE(found.found()) << row.text();
    const bool closed = row.set.rfind("chinchilla", 0) == 0;
    EXPECT_EQ(found.closed_form, closed) << row.text();
    const double value = row.quantity == "N_opt"   ? found.N
                         : row.quantity == "D_opt" ? found.D
                         : row.quantity == "L_opt" ? found.loss
                                                   : *found.exponent;
    EXPECT_RELATIVE(value, row.value, closed ? 1e-9 : row.quantity == "exponent" ? 1e-4 : 1e-6) << row.text();
  }
  EXPECT_EQ(rows, 32U);
}

// The cheapest model over its life that is as good as the compute-optimal one of a size.
TEST(Golden, CheapestWithInference) {
  std::size_t rows = 0;
  for (const auto& row : golden_values()) {
    if (row.at.count("as_good_as_N") == 0) continue;
    ++rows;
    const auto law = fitted_law(row.set);
    const auto reference = optimum_of_size(law, {}, row.at.at("as_good_as_N"));
    OptimumQuestion question;
    question.loss = reference.loss;
    question.inference_tokens = row.at.at("D_inf");
    const auto found = optimum(law, question);
    ASSERT_TRUE(found.found()) << row.text();
    const double reference_flops = 6.0 * reference.N * reference.D + 2.0 * reference.N * row.at.at("D_inf");
    const double value = row.quantity == "N_target"   ? found.N
                         : row.quantity == "D_target" ? found.D
                                                      : found.total_flops / reference_flops;
    EXPECT_RELATIVE(value, row.value, 1e-6) << row.text();
    EXPECT_NEAR(found.loss, reference.loss, 1e-12) << row.text();
  }
  EXPECT_EQ(rows, 12U);
}

// Kumar et al. with the offsets as 1 - exp(-P / gamma + n): factors of three equal precisions, and losses.
TEST(Golden, BitsInTraining) {
  const auto factors = [](double bits) {
    return binding_of("kumar-published", "N_eff", {{"N", 1.0}, {"D", 1.0}, {"P_w", bits}, {"P_a", bits}, {"P_kv", bits}});
  };
  EXPECT_RELATIVE(factors(4.0), 0.1909881926, 1e-9);
  EXPECT_RELATIVE(factors(8.0), 0.8277600798, 1e-9);
  EXPECT_RELATIVE(factors(16.0), 0.9936591813, 1e-9);
  EXPECT_RELATIVE(value_of("kumar-published", {{"N", 1.1e8}, {"D", 1.3e10}}), 3.3739849078, 1e-9);
  EXPECT_RELATIVE(value_of("kumar-published", {{"N", 1.1e8}, {"D", 1.3e10}, {"P_w", 4.0}}), 3.4600672170, 1e-9);

  const auto gap = [](double n, double w, double a, double kv) {
    return value_of("kumar-published", {{"N", n}, {"D", 1e11}, {"P_w", w}, {"P_a", a}, {"P_kv", kv}}) -
           value_of("kumar-published", {{"N", n}, {"D", 1e11}});
  };
  EXPECT_RELATIVE(gap(1e9, 4.0, 4.0, 4.0), 0.1863698262, 1e-9);
  EXPECT_RELATIVE(gap(8e9, 8.0, 8.0, 16.0), 0.0050472377, 1e-8);  // as printed, it has 8 digits
}

TEST(Golden, BitsAfterTraining) {
  EXPECT_RELATIVE(value_of("kumar-ptq-published", {{"N", 6.74e9}, {"D", 2e12}, {"P", 4.0}}), 0.0489673790, 1e-9);
  EXPECT_RELATIVE(value_of("chen-w4a4", {{"N", 5.94e8}, {"D", 1e11}, {"G", 1.0}}), 2.7409301075, 1e-9);
  EXPECT_RELATIVE(binding_of("chen-w4a4", "delta", {{"N", 5.94e8}, {"D", 1e11}, {"G", 32.0}}), 0.0441047667, 2e-9);  // as printed, half a unit is 1.1e-9
}

TEST(Golden, EffectiveParametersAndTokens) {
  EXPECT_RELATIVE(value_of("quartet-bf16", {{"N", 1e8}, {"D", 1e10}}), 2.8927460279, 1e-9);
  EXPECT_RELATIVE(value_of("quartet-bf16", {{"N", 1e8}, {"D", 1e10}, {"eff_N", 0.6451630916603083}, {"eff_D", 0.8934685215915907}}),
                  2.9732849743, 1e-9);
  auto law = fitted_law("effective-epoch");
  law.parameters = {477.8259, 2143.417, 1.817218, 0.3473105, 0.3671724};  // the digits that these values were computed from
  const double whole = value_of(law, {{"N", 8e9}, {"D", 1e12}});
  EXPECT_RELATIVE(whole, 2.0750739441, 1e-9);
  EXPECT_RELATIVE(value_of(law, {{"N", 8e9}, {"D", 1e12}, {"eff_N", 0.64}}) - whole, 0.0291237522, 1e-9);
}

}  // namespace
}  // namespace fitting

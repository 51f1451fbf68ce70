#include "fitting/optimum/bits.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/fitting/laws_golden.h"

namespace fitting {
namespace {

OptimumQuestion of_flops(double flops) {
  OptimumQuestion question;
  question.flops = flops;
  return question;
}

// Kumar's law without offsets and with one gamma.
FittedLaw equal_factors(double gamma) {
  auto law = fitted_law("kumar-published");
  for (std::size_t i = 5; i < 8; ++i) law.parameters[i] = gamma;
  for (std::size_t i = 8; i < 11; ++i) law.parameters[i] = 0.0;
  return law;
}

// k equal factors: k x = e^x - 1 with x = P / gamma, whatever the budget.
TEST(Bits, OfEqualFactorsAreAMultipleOfGamma) {
  double golden = 0.0;
  for (const auto& row : golden_values()) {
    if (row.quantity == "best bits over gamma") golden = row.value;
  }
  EXPECT_NEAR(3.0 * golden, std::expm1(golden), 1e-9);
  for (const double flops : {1e18, 1e22}) {
    const auto three = best_bits(equal_factors(2.0), of_flops(flops), {"P_w", "P_a", "P_kv"});
    EXPECT_TRUE(three.inside);
    EXPECT_NEAR(three.bits / 2.0 / golden, 1.0, 1e-9) << flops;
    EXPECT_NEAR(best_bits(equal_factors(2.0), of_flops(flops), {"P_w", "P_a"}).bits / 2.0, 1.25643, 1e-5);
  }
  const auto one = best_bits(equal_factors(2.0), of_flops(1e20), {"P_w"});
  EXPECT_FALSE(one.inside);  // no optimum: f(P) / P grows towards no bits
  EXPECT_NEAR(one.bits, 0.5, 1e-12);
}

// 7.00211, where f(P) / P is greatest: "7 to 8 bits" in the paper. The budget of 16 bits buys 16 / P times the FLOPs.
TEST(Bits, OfKumarAreSevenToEight) {
  const auto law = fitted_law("kumar-published");
  const auto best = best_bits(law, of_flops(1e20), {"P_w", "P_a", "P_kv"});
  EXPECT_TRUE(best.inside);
  EXPECT_NEAR(best.bits / 7.00211, 1.0, 1e-4);
  EXPECT_NEAR(best.at.flops / (1e20 * 16.0 / best.bits), 1.0, 1e-9);
}

// With the size given, minimise A (N f(P))^-alpha + B (16 C / (6 N P))^-beta over P: more bits for more FLOPs.
TEST(Bits, GrowWithTheBudgetOfAGivenSize) {
  const auto law = fitted_law("kumar-published");
  double before = 0.0;
  for (const double flops : {1e18, 1e20, 1e22}) {
    auto question = of_flops(flops);
    question.parameters = 1e9;
    const auto best = best_bits(law, question, {"P_w", "P_a", "P_kv"});
    EXPECT_TRUE(best.inside);
    EXPECT_GT(best.bits, before);
    before = best.bits;
    const auto loss = [&](double bits) {
      return LawFunction(law.law).value(law.parameters, {1e9, 16.0 * flops / (6e9 * bits), bits, bits, bits});
    };
    EXPECT_LT(loss(best.bits), loss(1.01 * best.bits));
    EXPECT_LT(loss(best.bits), loss(0.99 * best.bits));
  }
}

TEST(CriticalTokens, AreThoseOfKumarsFormula) {
  const auto law = fitted_law("kumar-published"), rise = fitted_law("kumar-ptq-published");
  const double expected =
      std::pow(0.4965 * 18060.0 * std::pow(1e9, 0.3439) * std::exp(4.0 / 0.5907) / (0.5068 * 0.0598), 1.0 / (0.4965 + 0.5068));
  EXPECT_NEAR(*critical_tokens(law, rise, {{"N", 1e9}, {"P", 4.0}}) / expected, 1.0, 1e-9);
}

}  // namespace
}  // namespace fitting

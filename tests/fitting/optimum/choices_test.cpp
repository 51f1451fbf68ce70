#include "fitting/optimum/choices.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace fitting {
namespace {

OptimumQuestion of_flops(double flops) {
  OptimumQuestion question;
  question.flops = flops;
  return question;
}

// Experts that help: m falls and n rises with E, as in the paper's reading.
FittedLaw joint() {
  FittedLaw law;
  law.name = "joint";
  law.law = law_of("joint-moe");
  for (const auto& parameter : law.law.parameters) {
    static const std::map<std::string, double> values = {{"a", 35.0}, {"b", 300.0}, {"c", 1.5}, {"alpha", -0.2}, {"beta", -0.25},
                                                         {"gamma", 0.0}, {"delta", -0.15}, {"omega", 0.02}, {"zeta", 0.0},
                                                         {"E_start", 2.0}, {"E_max", 300.0}};
    law.parameters.push_back(values.at(parameter.name));
  }
  return law;
}

TEST(Choices, OfExpertsDependOnMemory) {
  const auto law = joint();
  const auto question = of_flops(1e21);
  const std::vector<double> experts = {1, 2, 4, 8, 16, 32};
  const auto free = choices(law, question, "E", experts);
  ASSERT_EQ(free.size(), experts.size());
  EXPECT_TRUE(free.front().at.closed_form);
  EXPECT_EQ(best_choice(free, question)->value, 32.0);

  // All of the model within a limit, an expert being half of what is active.
  EXPECT_DOUBLE_EQ(largest_active(4e9, 1.0, 0.5), 4e9);
  EXPECT_DOUBLE_EQ(largest_active(4e9, 9.0, 0.5), 4e9 / 5.0);
  const auto best_within = [&](double limit) {
    const auto bounded = choices(law, question, "E", experts, [&](double e) { return largest_active(limit, e, 0.5); });
    for (std::size_t i = 0; i < experts.size(); ++i) {
      EXPECT_LE(bounded[i].at.N * (1.0 + (experts[i] - 1.0) * 0.5), limit * (1.0 + 1e-9));
      EXPECT_NEAR(6.0 * bounded[i].at.N * bounded[i].at.D / 1e21, 1.0, 1e-9);
      EXPECT_GE(bounded[i].at.loss, free[i].at.loss - 1e-12);
    }
    return best_choice(bounded, question)->value;
  };
  EXPECT_EQ(best_within(1e12), 32.0);
  EXPECT_LT(best_within(1e7), 32.0);
}

TEST(Choices, OfSamplesPayForInference) {
  const auto law = fitted_law("chinchilla-hoffmann-tex");
  const auto made = sample_choices(law, of_flops(1e22), 1e3, 1e7, {1, 10, 100});
  auto served = of_flops(1e22);
  served.inference_tokens = 1e12;
  EXPECT_DOUBLE_EQ(made[2].at.N, optimum(law, served).N);
  EXPECT_GT(made[0].at.N, made[2].at.N);  // more samples: a smaller model
  EXPECT_LT(made[0].at.loss, made[2].at.loss);

  FittedLaw sampled;
  sampled.law = law_of("train-to-test");
  sampled.parameters = law.parameters;
  sampled.parameters.insert(sampled.parameters.end(), {0.5, 1.0});
  const auto with_k = sample_choices(sampled, of_flops(1e22), 1e3, 1e7, {1, 10, 100});
  for (std::size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(with_k[i].at.loss, made[i].at.loss + 0.5 / made[i].value, 1e-12);
  // Ten samples cost 0.45 less than one and a hundred 0.045 less than ten: less than what their inference takes from training.
  EXPECT_GT(made[2].at.loss - made[1].at.loss, 0.045);
  EXPECT_LT(made[1].at.loss - made[0].at.loss, 0.45);
  EXPECT_EQ(best_choice(with_k, of_flops(1e22))->value, 10.0);
}

// With Beta(1, 1) the chance to fail k times is 1 / (k + 1).
TEST(PassAtK, OfABetaDistribution) {
  for (const double k : {1.0, 5.0, 100.0}) EXPECT_NEAR(pass_at_k(1.0, 1.0, k), k / (k + 1.0), 1e-12);
  EXPECT_NEAR(pass_at_k(0.3, 0.7, 1.0), 0.3, 1e-12);  // one sample: the mean
}

TEST(PassAtK, OfSamplesIsWithoutReplacement) {
  EXPECT_NEAR(pass_at_k_of_samples(10, 3, 1), 0.3, 1e-15);
  EXPECT_NEAR(pass_at_k_of_samples(5, 2, 2), 1.0 - 3.0 / 10.0, 1e-15);  // C(3, 2) / C(5, 2)
  EXPECT_EQ(pass_at_k_of_samples(10, 8, 3), 1.0);                      // only two failed
  EXPECT_EQ(pass_at_k_of_samples(10, 0, 5), 0.0);
}

// (k1 / k2)^(1 / p1) C^(p2 / p1 - 1) with C in PF-days: 1.16 is printed, near 4 PF-days; one at the crossing near 3e4.
TEST(ComputeMultiplier, HoldsWhereItWasMeasured) {
  const auto mla = fitted_law("kimi-mla"), linear = fitted_law("kimi-linear");
  for (const double days : {1.0, 4.0, 3e4}) {
    const double expected = std::pow(2.3092 / 2.2879, 1.0 / 0.0536) * std::pow(days, 0.0527 / 0.0536 - 1.0);
    EXPECT_NEAR(*compute_multiplier(mla, linear, days * 8.64e19), expected, 1e-9) << days;
  }
  EXPECT_NEAR(*compute_multiplier(mla, linear, 4.0 * 8.64e19), 1.16, 0.005);
  EXPECT_NEAR(*compute_multiplier(mla, linear, 3e4 * 8.64e19), 1.0, 0.005);
}

TEST(Repetition, KeepsItsBaseWhereNothingRepeats) {
  const auto base = fitted_law("chinchilla-epoch");
  const auto law = with_repetition(base);
  auto question = of_flops(1e21);
  const auto plain = optimum(base, question);
  question.unique_tokens = 1e13;
  EXPECT_NEAR(optimum(law, question).N / plain.N, 1.0, 1e-9);
  question.unique_tokens = plain.D / 4.0;
  const auto repeated = optimum(law, question);
  EXPECT_GT(repeated.loss, plain.loss);
  EXPECT_GT(repeated.D, *question.unique_tokens);
  bool shallow = false, of_figure = false;
  for (const auto& warning : repeated.warnings) {
    shallow = shallow || warning.find("shallow") != std::string::npos;
    of_figure = of_figure || warning.find("54 points") != std::string::npos;
  }
  EXPECT_TRUE(shallow);     // the decay is still that of Muennighoff et al.
  EXPECT_FALSE(of_figure);  // the base is not
  EXPECT_THROW(with_repetition(fitted_law("kumar-published")), core::InputError);
}

}  // namespace
}  // namespace fitting

#include "planner/budget/loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "planner/budget/interval.h"
#include "planner/budget/law.h"
#include "planner/budget/repeats.h"
#include "tests/planner/budget/laws.h"

namespace planner {
namespace {

// N of D = D*(C): alpha A N^-alpha = beta B D^-beta, so N = (alpha A D^beta / (beta B))^(1/alpha).
TEST(Loss, FindsTheParametersThatTokensAreOptimalFor) {
  const Chinchilla law;
  for (const double D : {1e9, 1e11, 1e13}) {
    const double N = std::pow(law.alpha * law.A * std::pow(D, law.beta) / (law.beta * law.B), 1.0 / law.alpha);
    EXPECT_NEAR(optimal_parameters(law, D) / N, 1.0, 1e-6);
  }
}

// D = (B / (L - E - A N^-alpha))^(1/beta).
TEST(Loss, FindsTheTokensForALoss) {
  const Chinchilla law;
  const double N = 8e9, target = 2.2;
  const double D = std::pow(law.B / (target - law.E - law.A * std::pow(N, -law.alpha)), 1.0 / law.beta);
  EXPECT_NEAR(*tokens_for_loss(law, N, {}, target) / D, 1.0, 1e-12);
  // No number of tokens takes the loss below that of N parameters alone.
  EXPECT_FALSE(tokens_for_loss(law, N, {}, law.E + 0.999 * law.A * std::pow(N, -law.alpha)));
}

// Muennighoff et al. 2023: four epochs are worth 3.73.
TEST(Loss, RepeatedTokensAreWorthLess) {
  const auto constants = load_repeats().constants;
  const double worth = 1.0 + constants.tokens * (1.0 - std::exp(-3.0 / constants.tokens));
  EXPECT_NEAR(worth, 3.73, 0.005);
  const Chinchilla law;
  const auto repeated = with_repeats(chinchilla_model(), constants);
  const double U = 1e11, N = 0.5 * optimal_parameters(law, U);
  EXPECT_NEAR(repeated.loss(N, 4.0 * U, U), law(N, worth * U), 1e-12);
  EXPECT_NEAR(repeated.loss(N, U, U), law(N, U), 1e-12);
}

// N' = U_N + U_N R_N* (1 - e^(-R_N / R_N*)) with U_N = N_opt(U), R_N = 1 at twice as many.
TEST(Loss, ParametersBeyondTheTokensAreWorthLess) {
  const Chinchilla law;
  const RepeatConstants constants{15.387756, 5.309743};
  const auto repeated = with_repeats(chinchilla_model(), constants);
  const double U = 1e11, optimal = optimal_parameters(law, U);
  const double worth = optimal * (1.0 + constants.parameters * (1.0 - std::exp(-1.0 / constants.parameters)));
  EXPECT_NEAR(repeated.loss(2.0 * optimal, U, U), law(worth, U), 1e-9);
}

// The check value of the refitted constants at seven digits: L(8e9, 1e12).
TEST(Loss, ReadsALawOfData) {
  const auto model = loss_model_of("chinchilla-epoch");
  EXPECT_NEAR(model.loss(8e9, 1e12, 1e12), 2.0750739441, 1e-7);
  EXPECT_EQ(model.counts, LossModel::Counts::total);
  EXPECT_THROW(loss_model_of("chinchila"), core::InputError);
}

// Its draws spread as far as the bootstrap of Besiroglu et al. 2024 does (4,000 resamples, 95 %): E from 1.769 to 1.871, read
// off where N and D are without end; alpha from 0.317 to 0.373.
TEST(Loss, DrawsOfTheDefaultLawSpreadAsPublished) {
  const auto model = loss_model_of("chinchilla-epoch");
  std::vector<double> E, alpha;
  for (const auto& draw : model.draws) {
    E.push_back(draw(1e60, 1e60, 1e60));
    alpha.push_back(std::log((draw(1e9, 1e60, 1e60) - E.back()) / (draw(1e10, 1e60, 1e60) - E.back())) / std::log(10.0));
  }
  EXPECT_GE(model.draws.size(), 200U);
  EXPECT_NEAR(quantile(E, 0.025), 1.769, 0.01);
  EXPECT_NEAR(quantile(E, 0.975), 1.871, 0.01);
  EXPECT_NEAR(quantile(alpha, 0.025), 0.317, 0.005);
  EXPECT_NEAR(quantile(alpha, 0.975), 0.373, 0.005);
}

// The form that repeats take over any law is that of the law which has it built in.
TEST(Loss, RepeatsAgreeWithTheLawThatKnowsThem) {
  const auto known = loss_model_of("data-constrained-muennighoff");
  EXPECT_TRUE(known.knows_repeats);
  const auto repeated = with_repeats(loss_model_of("chinchilla-muennighoff"), load_repeats().constants);
  for (const double N : {1e9, 3e10}) {
    for (const double D : {5e10, 4e11, 4e12})
      EXPECT_NEAR(repeated.loss(N, D, std::min(D, 1e11)) / known.loss(N, D, std::min(D, 1e11)), 1.0, 1e-6);
  }
}

TEST(Loss, RefusesLawsOfSomethingElse) {
  EXPECT_THROW(loss_model_of("kaplan-n-published"), core::InputError);
  EXPECT_THROW(loss_model_of("llama3-tokens-published"), core::InputError);
}

TEST(Loss, CountsParametersAsTheLawDoes) {
  core::ParameterCount count;
  count.total = 100, count.active = 40, count.embedding = 7, count.output = 5;
  EXPECT_EQ(counted(LossModel::Counts::total, count), 100.0);
  EXPECT_EQ(counted(LossModel::Counts::nonemb, count), 88.0);
  EXPECT_EQ(counted(LossModel::Counts::active, count), 40.0);
}

}  // namespace
}  // namespace planner

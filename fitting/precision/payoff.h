#pragma once

#include <optional>
#include <string>

#include "fitting/fitted_law.h"
#include "fitting/precision/recipe_effects.h"

namespace fitting {

// The terms of L = E + A / N^alpha + B / D^beta that say what more parameters and tokens buy.
struct LossTerms {
  double A = 0.0, alpha = 0.0, B = 0.0, beta = 0.0;
};

// Throws InputError for a law of another form.
LossTerms loss_terms(const FittedLaw& law);

// Factors of bf16-equivalent compute that bring back the loss which a recipe costs at N parameters and D tokens.
struct Payback {
  double parameters = 1.0;        // M_N = 1 / (eff_N eff_D): N / eff_N and D / eff_D (the same tokens where eff_D is 1)
  double both = 1.0;              // M_R = k^2, L(k N eff_N, k D eff_D) = L(N, D): same tokens a parameter
  std::optional<double> tokens;   // M_D = m, L(N eff_N, m D eff_D) = L(N, D): same parameters; nothing where no number up to most_tokens does
};
// More than so many times the tokens is no way to bring a loss back.
inline constexpr double most_tokens = 100.0;
Payback payback(const LossTerms& law, double N, double D, double eff_N, double eff_D);

// The price of loss by the one measured pair, MXFP4 at 8B, 1e12 tokens (arXiv 2509.25149, Fig. 6b): 36 % more tokens closed one
// percentage point, ln M = 0.31 a percent. Brackets M_D from below: laws say more.
double tokens_at_measured_price(double gap_percent);

// Low precision pays where it is faster, s, than the compute that it costs, M.
enum class Worth : std::uint8_t { pays, undecided, does_not_pay };
std::string_view name_of(Worth worth);
struct WorthOfSpeed {
  Worth worth = Worth::undecided;
  Ranged factor;   // M_N, and of the range's best and worst end
  double gain = 0.0;   // s / M_N
};
// By M_N, exact for the same tokens. Undecided where s lies between the M of the two ends.
WorthOfSpeed worth_of_speed(double speed, const RecipeEffect& effect);

// End-to-end speed of linear layers that are `linear_speed` times as fast and took `share` of a step: Amdahl.
double speed_of_linears(double share, double linear_speed);
// Speed of a run that does `share` of its work in 16 bits.
double speed_with_late_switch(double speed, double share);

// Parameters of a 16-bit model as good as one of N that a quantisation after training costs `gap` nats.
double equal_parameters(const LossTerms& law, double N, double gap);

}  // namespace fitting

// A numeric recipe is the two shares, on whatever constants: forward noise costs parameters, backward noise costs tokens.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law effective;
const Law effective = {
    .name = "effective",
    .title = "Chinchilla over effective parameters and tokens",
    .source = "Frantar et al. 2025, arXiv 2502.16440; Castro et al. 2025 (Quartet), arXiv 2505.14669",
    .formula = "E + A / (N * eff_N)^alpha + B / (D * eff_D)^beta",
    .variables = {{"N", "parameters, embeddings included"},
                  {"D", "training tokens"},
                  {"eff_N", "share of parameters that a recipe leaves effective", 1.0},
                  {"eff_D", "share of tokens that a recipe leaves effective", 1.0}},
    .parameters = {{"A", -20, 60, {5, 10}, Scale::log},
                   {"B", -20, 60, {5, 10}, Scale::log},
                   {"E", -20, 5, {-1, 0, 0.5}, Scale::log},
                   {"alpha", 1e-6, 3, {0.3, 0.6}},
                   {"beta", 1e-6, 3, {0.3, 0.6}}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

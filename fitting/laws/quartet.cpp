#include "fitting/law.h"

namespace fitting::laws {

extern const Law quartet;
const Law quartet = {
    .name = "quartet",
    .title = "loss of effective parameters and tokens, under one power",
    .source = "Castro et al. 2025 (Quartet), arXiv 2505.14669",
    .formula = "(A / (N * eff_N)^alpha + B / (D * eff_D)^beta)^gamma + E",
    .variables = {{"N", "parameters without embeddings"},
                  {"D", "training tokens"},
                  {"eff_N", "share of parameters that a recipe leaves effective", 1.0},
                  {"eff_D", "share of tokens that a recipe leaves effective", 1.0}},
    .parameters = {{"A", -20, 60, {8, 12}, Scale::log},
                   {"B", -20, 60, {8, 12}, Scale::log},
                   {"E", -20, 5, {0, 0.5}, Scale::log},
                   {"alpha", 1e-6, 3, {0.3, 0.6}},
                   {"beta", 1e-6, 3, {0.3, 0.6}},
                   {"gamma", 1e-6, 3, {0.3, 1}}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

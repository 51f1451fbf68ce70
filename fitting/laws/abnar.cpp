#include "fitting/law.h"

namespace fitting::laws {

extern const Law abnar;
const Law abnar = {
    .name = "abnar",
    .title = "loss of mixtures of experts of a sparsity",
    .source = "Abnar et al. 2025, arXiv 2501.12370, Eq. 6",
    .formula = "a / N^alpha + b / D^beta + c / (1 - S)^lambda + d / ((1 - S)^delta * N^gamma) + e",
    .variables = {{"N", "parameters of all experts, embeddings included"},
                  {"D", "training tokens"},
                  {"S", "sparsity: share of experts that do not work for a token"},
                  {"N_shared", "parameters outside of experts", 0.0}},
    .parameters = {{"a", -20, 60, {5, 10}, Scale::log},
                   {"b", -20, 60, {5, 10}, Scale::log},
                   {"c", -20, 20, {-1, 1}, Scale::log},
                   {"d", -20, 60, {0, 3}, Scale::log},
                   {"e", -20, 5, {-1, 0.5}, Scale::log},
                   {"alpha", 1e-6, 3, {0.3, 0.6}},
                   {"beta", 1e-6, 3, {0.3, 0.6}},
                   {"gamma", 1e-6, 3, {0.1, 0.4}},
                   {"delta", -3, 3, {-0.2, 0.2}},
                   {"lambda", -3, 3, {-0.2, 0.2}}},
    .training_flops = "6 * (N_shared + (1 - S) * (N - N_shared)) * D",
};

}  // namespace fitting::laws

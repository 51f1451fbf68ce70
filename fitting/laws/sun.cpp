// Past D_crit tokens the loss rises again. Quantised were weights (forward and in dgrad) and inputs in wgrad only.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law sun;
const Law sun = {
    .name = "sun",
    .title = "loss of training in floating point of few bits",
    .source = "Sun et al. 2025, arXiv 2501.02423, Table 2",
    .formula =
        "range_and_steps = gamma * (E + 0.5)^delta * (M + 0.5)^nu; D_crit = (d * range_and_steps * N^alpha / log2(B))^(1 / (2 * beta)); "
        "n / N^alpha + d / D^beta + epsilon + D^beta / N^alpha * log2(B) / range_and_steps",
    .variables = {{"N", "parameters, embeddings included"},
                  {"D", "training tokens"},
                  {"E", "bits of the exponent"},
                  {"M", "bits of the mantissa"},
                  {"B", "values that share a scale"}},
    .parameters = {{"n", -20, 60, {4, 8}, Scale::log},
                   {"d", -20, 60, {7, 11}, Scale::log},
                   {"epsilon", -20, 5, {0.5}, Scale::log},
                   {"alpha", 1e-6, 3, {0.2, 0.4}},
                   {"beta", 1e-6, 3, {0.3, 0.6}},
                   {"gamma", -20, 60, {6, 10}, Scale::log},
                   {"delta", 0, 20, {1, 3}},
                   {"nu", 0, 20, {1, 3}}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

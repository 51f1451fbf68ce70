#include "fitting/law.h"

namespace fitting::laws {

extern const Law joint_moe;
const Law joint_moe = {
    .name = "joint-moe",
    .title = "loss of active parameters, tokens and experts",
    .source = "Ludziejewski et al. 2025, arXiv 2502.05172",
    .formula =
        "E_hat = 1 / (1 / (E - 1 + 1 / (1 / E_start - 1 / E_max)) + 1 / E_max); "
        "a * E_hat^delta * N^(alpha + gamma * log(E_hat)) + b * E_hat^omega * D^(beta + zeta * log(E_hat)) + c",
    .variables = {{"N", "active parameters"}, {"D", "training tokens"}, {"E", "experts"}},
    .parameters = {{"a", -20, 60, {5, 10}, Scale::log},
                   {"b", -20, 60, {5, 10}, Scale::log},
                   {"c", -20, 5, {0.5}, Scale::log},
                   {"alpha", -3, -1e-6, {-0.5, -0.25}},
                   {"beta", -3, -1e-6, {-0.5, -0.25}},
                   {"gamma", -1, 1, {0}},
                   {"delta", -3, 3, {-0.2, 0.2}},
                   {"omega", -3, 3, {-0.2, 0.2}},
                   {"zeta", -1, 1, {0}},
                   {"E_start", 0, 5, {0.5}, Scale::log},
                   {"E_max", 1, 15, {6}, Scale::log}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

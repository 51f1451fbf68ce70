// The form of the main text, for fits. The published constants belong to the form with offsets: kumar.
#include <limits>

#include "fitting/law.h"

namespace fitting::laws {

extern const Law kumar_plain;
const Law kumar_plain = {
    .name = "kumar-plain",
    .title = "loss of parameters, tokens and bits in training, without offsets",
    .source = "Kumar et al. 2024, arXiv 2411.04330, main text",
    .formula =
        "N_eff = N * (1 - exp(-P_w / gamma_w)) * (1 - exp(-P_a / gamma_a)) * (1 - exp(-P_kv / gamma_kv)); "
        "A / N_eff^alpha + B / D^beta + E",
    .variables = {{"N", "parameters without embeddings"},
                  {"D", "training tokens"},
                  {"P_w", "bits of weights", std::numeric_limits<double>::infinity()},
                  {"P_a", "bits of activations", std::numeric_limits<double>::infinity()},
                  {"P_kv", "bits of keys and values", std::numeric_limits<double>::infinity()}},
    .parameters = {{"A", -20, 60, {5, 8}, Scale::log},
                   {"B", -20, 60, {5, 8}, Scale::log},
                   {"E", -20, 5, {0.5, 1}, Scale::log},
                   {"alpha", 1e-6, 3, {0.3, 0.5}},
                   {"beta", 1e-6, 3, {0.3, 0.5}},
                   {"gamma_w", 0.05, 50, {1, 2.5}},
                   {"gamma_a", 0.05, 50, {1, 2.5}},
                   {"gamma_kv", 0.05, 50, {1, 2.5}}},
    .huber = 1e-2,  // above the noise of runs: with this many parameters, medians tell too little
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

// What is not quantised has infinite bits. The offsets n stand in the appendix only, their sign is derived: only this one gives what
// the paper reports (7 to 8 bits best, models four times as large at 4). A factor of zero or less has no logarithm: the loss is not a
// number there, also where two such factors would multiply to a positive one.
#include <limits>

#include "fitting/law.h"

namespace fitting::laws {

extern const Law kumar;
const Law kumar = {
    .name = "kumar",
    .title = "loss of parameters, tokens and bits in training",
    .source = "Kumar et al. 2024, arXiv 2411.04330, appendix K",
    .formula =
        "f_w = 1 - exp(n_w - P_w / gamma_w); f_a = 1 - exp(n_a - P_a / gamma_a); f_kv = 1 - exp(n_kv - P_kv / gamma_kv); "
        "N_eff = N * exp(log(f_w) + log(f_a) + log(f_kv)); A / N_eff^alpha + B / D^beta + E",
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
                   {"gamma_kv", 0.05, 50, {1, 2.5}},
                   {"n_w", -5, 10, {0}},
                   {"n_a", -5, 10, {0}},
                   {"n_kv", -5, 10, {0}}},
    .huber = 1e-2,  // above the noise of runs: with this many parameters, medians tell too little
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

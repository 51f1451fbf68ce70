#include "fitting/law.h"

namespace fitting::laws {

extern const Law chen;
const Law chen = {
    .name = "chen",
    .title = "loss of quantisation-aware training",
    .source = "Chen et al. 2025, arXiv 2505.14302",
    .formula =
        "delta = k * D^gamma_D * log2(G)^gamma_G / N^gamma_N; "
        "E + A / N^alpha + B / D^beta + delta",
    .variables = {{"N", "parameters, embeddings included"},
                  {"D", "training tokens"},
                  {"G", "weights of a group that share a scale; the real length for a channel or tensor"}},
    .parameters = {{"A", -20, 60, {5, 8}, Scale::log},
                   {"B", -20, 60, {5, 8}, Scale::log},
                   {"E", -20, 5, {0.5}, Scale::log},
                   {"alpha", 1e-6, 3, {0.3}},
                   {"beta", 1e-6, 3, {0.3}},
                   {"k", -40, 40, {-3, 0}, Scale::log},
                   {"gamma_N", 1e-6, 3, {0.1, 0.3}},
                   {"gamma_D", 1e-6, 3, {0.05, 0.2}},
                   {"gamma_G", 1e-6, 3, {0.3, 0.8}}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

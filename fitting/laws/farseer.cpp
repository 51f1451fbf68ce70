#include "fitting/law.h"

namespace fitting::laws {

extern const Law farseer;
const Law farseer = {
    .name = "farseer",
    .title = "loss whose data exponent depends on size",
    .source = "Li et al. 2025 (Farseer), arXiv 2506.10972, Eq. 3",
    .formula = "exp(a_3 * N^gamma + b_3) + exp(a_2 * N^beta + b_2) * D^(-exp(a_1 * N^alpha + b_1))",
    .variables = {{"N", "parameters without embeddings"}, {"D", "training tokens"}},
    .parameters = {{"a_1", -50, 50, {-0.1, 0.1}},
                   {"b_1", -20, 20, {-1, 0}},
                   {"a_2", -500, 500, {1, 10}},
                   {"b_2", -100, 100, {0}},
                   {"a_3", -50, 50, {-0.1, 0.1}},
                   {"b_3", -20, 20, {0, 1}},
                   {"alpha", -1, 1, {-0.1, 0.1}},
                   {"beta", -1, 1, {-0.1, 0.1}},
                   {"gamma", -1, 1, {-0.1, 0.1}}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

#include "fitting/law.h"

namespace fitting::laws {

extern const Law general_q;
const Law general_q = {
    .name = "general-q",
    .title = "Chinchilla at q = 1, Kaplan at E = 0 and q = alpha_D",
    .source = "joins Kaplan et al. 2020, Eq. 1.5, and Hoffmann et al. 2022, Eq. 2",
    .formula = "E + ((A / N^alpha)^(1 / q) + (B / D^beta)^(1 / q))^q",
    .variables = {{"N", "parameters, embeddings included"}, {"D", "training tokens"}},
    .parameters = {{"A", -20, 60, {5, 10}, Scale::log},
                   {"B", -20, 60, {5, 10}, Scale::log},
                   {"E", -20, 5, {-1, 0, 0.5}, Scale::log},
                   {"alpha", 1e-6, 3, {0.3, 0.6}},
                   {"beta", 1e-6, 3, {0.3, 0.6}},
                   {"q", 0.02, 5, {0.3, 1}}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

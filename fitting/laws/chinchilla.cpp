// Chinchilla, approach 3: the starts are those of the paper (section D.4): 5 x 5 x 5 x 6 x 6 = 4,500.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law chinchilla;
const Law chinchilla = {
    .name = "chinchilla",
    .title = "loss of parameters and tokens",
    .source = "Hoffmann et al. 2022, arXiv 2203.15556, Eq. 2 and 3",
    .formula = "E + A / N^alpha + B / D^beta",
    .variables = {{"N", "parameters, embeddings included"}, {"D", "training tokens"}},
    .parameters = {{"A", -20, 60, {0, 5, 10, 15, 20, 25}, Scale::log},
                   {"B", -20, 60, {0, 5, 10, 15, 20, 25}, Scale::log},
                   {"E", -20, 5, {-1, -0.5, 0, 0.5, 1}, Scale::log},
                   {"alpha", 1e-6, 3, {0, 0.5, 1, 1.5, 2}},
                   {"beta", 1e-6, 3, {0, 0.5, 1, 1.5, 2}}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

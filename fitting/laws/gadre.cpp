// alpha = beta = 2 eta, a = A 6^eta and b = B 6^eta of Chinchilla. The best M is (b / a)^(1 / (2 eta)) at any compute.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law gadre;
const Law gadre = {
    .name = "gadre",
    .title = "Chinchilla with one exponent, over compute and tokens a parameter",
    .source = "Gadre et al. 2024, arXiv 2403.08540",
    .formula = "M = D / N; C = 6 * N * D; E + (a * M^eta + b * M^-eta) * C^-eta",
    .variables = {{"N", "parameters, embeddings included"}, {"D", "training tokens"}},
    .parameters = {{"a", -20, 80, {5, 10, 15}, Scale::log},
                   {"b", -20, 80, {5, 10, 15}, Scale::log},
                   {"E", -20, 5, {-1, 0, 0.5}, Scale::log},
                   {"eta", 1e-6, 3, {0.1, 0.2, 0.4}}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

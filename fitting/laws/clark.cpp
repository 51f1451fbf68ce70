// All runs took 130e9 tokens, so that it has neither tokens nor compute. Logarithms are of base 10. N_dense is the size of the dense
// model with the same loss: at one expert E_hat is E_start.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law clark;
const Law clark = {
    .name = "clark",
    .title = "loss of a dense model whose feed-forward layers become experts",
    .source = "Clark et al. 2022, arXiv 2202.01169, Eq. 1",
    .formula =
        "E_hat = 1 / (1 / (E - 1 + 1 / (1 / E_start - 1 / E_max)) + 1 / E_max); "
        "lg_L = a * log10(N) + b * log10(E_hat) + c * log10(N) * log10(E_hat) + d; "
        "N_dense = 10^((lg_L - d - b * log10(E_start)) / (a + c * log10(E_start))); "
        "10^lg_L",
    .variables = {{"N", "parameters of the dense model, embeddings included"}, {"E", "experts"}},
    .parameters = {{"a", -1, 0, {-0.1, -0.05}},
                   {"b", -1, 1, {-0.1}},
                   {"c", -1, 1, {0, 0.01}},
                   {"d", -5, 5, {0.5, 1}},
                   {"E_start", 0, 5, {0.2, 1}, Scale::log},
                   {"E_max", 1, 15, {5, 7}, Scale::log}},
};

}  // namespace fitting::laws

// Fits one more number, eff, to runs with and without a compression; the law of both is otherwise the same.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law frantar;
const Law frantar = {
    .name = "frantar",
    .title = "effective parameters of one kind of compression",
    .source = "Frantar et al. 2025, arXiv 2502.16440",
    .formula = "E + A / (N * eff^Q)^alpha + B / D^beta",
    .variables = {{"N", "parameters, embeddings included"},
                  {"D", "training tokens"},
                  {"Q", "1 for runs of the compression, 0 for others"}},
    .parameters = {{"A", -20, 60, {5, 10}, Scale::log},
                   {"B", -20, 60, {5, 10}, Scale::log},
                   {"E", -20, 5, {-1, 0, 0.5}, Scale::log},
                   {"alpha", 1e-6, 3, {0.3, 0.6}},
                   {"beta", 1e-6, 3, {0.3, 0.6}},
                   {"eff", -8, 3, {-0.5, 0}, Scale::log}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

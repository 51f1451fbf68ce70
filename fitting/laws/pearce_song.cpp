// Embeddings of a model of fixed shape grow as its width, which is the third root of its other parameters. The best size follows
// N ~ C^0.74 to C^0.78 where Kaplan et al. measured, and C^(beta / (alpha + beta)) far above it.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law pearce_song;
const Law pearce_song = {
    .name = "pearce-song",
    .title = "Chinchilla over parameters without embeddings",
    .source = "Pearce and Song 2024, arXiv 2406.12907",
    .formula = "N_T = N + omega * N^(1 / 3); E + A / N_T^alpha + B / D^beta",
    .variables = {{"N", "parameters without embeddings"}, {"D", "training tokens"}},
    .parameters = {{"A", -20, 60, {5, 10}, Scale::log},
                   {"B", -20, 60, {5, 10}, Scale::log},
                   {"E", -20, 5, {-1, 0, 0.5}, Scale::log},
                   {"alpha", 1e-6, 3, {0.3, 0.6}},
                   {"beta", 1e-6, 3, {0.3, 0.6}},
                   {"omega", -20, 25, {8, 11}, Scale::log}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

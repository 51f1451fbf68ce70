#include "fitting/law.h"

namespace fitting::laws {

extern const Law transfer;
const Law transfer = {
    .name = "transfer",
    .title = "tokens that pre-training on another distribution is worth",
    .source = "Hernandez et al. 2021, arXiv 2102.01293",
    .formula = "k * D_F^alpha * N^beta",
    .variables = {{"D_F", "tokens of fine-tuning"}, {"N", "parameters without embeddings"}},
    .parameters = {{"k", -60, 60, {0, 10}, Scale::log},
                   {"alpha", 1e-6, 3, {0.2, 0.5}},
                   {"beta", 1e-6, 3, {0.2, 0.5}}},
    .output = "D_T",
    .output_meaning = "tokens",
};

}  // namespace fitting::laws

#include "fitting/law.h"

namespace fitting::laws {

extern const Law kaplan_d_min;
const Law kaplan_d_min = {
    .name = "kaplan-d-min",
    .title = "tokens from which a model of a size does not overfit",
    .source = "Kaplan et al. 2020, arXiv 2001.08361, Eq. 4.4",
    .formula = "k * N^p",
    .variables = {{"N", "parameters without embeddings"}},
    .parameters = {{"k", -20, 60, {0, 8, 16}, Scale::log},
                   {"p", -3, 3, {0.4, 0.8}}},
    .output = "D",
    .output_meaning = "tokens",
};

}  // namespace fitting::laws

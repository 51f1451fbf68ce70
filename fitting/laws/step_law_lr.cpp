#include "fitting/law.h"

namespace fitting::laws {

extern const Law step_law_lr;
const Law step_law_lr = {
    .name = "step-law-lr",
    .title = "best peak learning rate of parameters and tokens",
    .source = "Li et al. 2025 (Step Law), arXiv 2503.04715",
    .formula = "k * N^a * D^b",
    .variables = {{"N", "parameters without embeddings"}, {"D", "training tokens"}},
    .parameters = {{"k", -80, 80, {-5, 0, 5}, Scale::log},
                   {"a", -3, 3, {-0.7, 0}},
                   {"b", -3, 3, {0, 0.3}}},
    .output = "lr",
    .output_meaning = "peak learning rate",
    .huber = 1.0,  // a regression in logarithms, as published
    .setting = true,
};

}  // namespace fitting::laws

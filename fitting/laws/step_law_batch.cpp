#include "fitting/law.h"

namespace fitting::laws {

extern const Law step_law_batch;
const Law step_law_batch = {
    .name = "step-law-batch",
    .title = "best batch of tokens",
    .source = "Li et al. 2025 (Step Law), arXiv 2503.04715",
    .formula = "k * D^p",
    .variables = {{"D", "training tokens"}},
    .parameters = {{"k", -80, 80, {-5, 0, 5}, Scale::log},
                   {"p", -3, 3, {-0.3, 0.3, 0.6}}},
    .output = "B",
    .output_meaning = "tokens a batch",
    .huber = 1.0,  // a regression in logarithms, as published
    .setting = true,
};

}  // namespace fitting::laws

#include "fitting/law.h"

namespace fitting::laws {

extern const Law deepseek_batch;
const Law deepseek_batch = {
    .name = "deepseek-batch",
    .title = "best batch of compute",
    .source = "DeepSeek LLM 2024, arXiv 2401.02954, Eq. 1",
    .formula = "k * C^p",
    .variables = {{"C", "training FLOPs, M D with M = 72 layers width^2 + 12 layers width sequence"}},
    .parameters = {{"k", -80, 80, {-5, 0, 5}, Scale::log},
                   {"p", -3, 3, {-0.3, 0.3, 0.6}}},
    .output = "B",
    .output_meaning = "tokens a batch",
    .huber = 1.0,  // a regression in logarithms, as published
    .setting = true,
};

}  // namespace fitting::laws

#include "fitting/law.h"

namespace fitting::laws {

extern const Law deepseek_lr;
const Law deepseek_lr = {
    .name = "deepseek-lr",
    .title = "best peak learning rate of compute",
    .source = "DeepSeek LLM 2024, arXiv 2401.02954, Eq. 1",
    .formula = "k * C^p",
    .variables = {{"C", "training FLOPs, M D with M = 72 layers width^2 + 12 layers width sequence"}},
    .parameters = {{"k", -80, 80, {-5, 0, 5}, Scale::log},
                   {"p", -3, 3, {-0.3, 0.3, 0.6}}},
    .output = "lr",
    .output_meaning = "peak learning rate",
    .huber = 1.0,  // a regression in logarithms, as published
    .setting = true,
};

}  // namespace fitting::laws

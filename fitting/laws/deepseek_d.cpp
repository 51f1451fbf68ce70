#include "fitting/law.h"

namespace fitting::laws {

extern const Law deepseek_d;
const Law deepseek_d = {
    .name = "deepseek-d",
    .title = "best tokens of compute",
    .source = "DeepSeek LLM 2024, arXiv 2401.02954, Eq. 4",
    .formula = "k * C^p",
    .variables = {{"C", "training FLOPs, M D with M = 72 layers width^2 + 12 layers width sequence"}},
    .parameters = {{"k", -80, 80, {-5, 0, 5}, Scale::log},
                   {"p", -3, 3, {-0.3, 0.3, 0.6}}},
    .output = "D",
    .output_meaning = "training tokens",
};

}  // namespace fitting::laws

#include "fitting/law.h"

namespace fitting::laws {

extern const Law llama3_tokens;
const Law llama3_tokens = {
    .name = "llama3-tokens",
    .title = "best tokens of compute",
    .source = "Llama 3 2024, arXiv 2407.21783",
    .formula = "k * C^p",
    .variables = {{"C", "training FLOPs"}},
    .parameters = {{"k", -80, 80, {-5, 0, 5}, Scale::log},
                   {"p", -3, 3, {-0.3, 0.3, 0.6}}},
    .output = "D",
    .output_meaning = "training tokens",
};

}  // namespace fitting::laws

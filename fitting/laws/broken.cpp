#include "fitting/law.h"

namespace fitting::laws {

extern const Law broken;
const Law broken = {
    .name = "broken",
    .title = "power law with one break",
    .source = "Caballero et al. 2022, arXiv 2210.14891",
    .formula = "a + b * x^-c_0 * (1 + (x / d_1)^(1 / f_1))^(-c_1 * f_1)",
    .variables = {{"x", "what is scaled: parameters, tokens or FLOPs"}},
    .parameters = {{"a", -20, 20, {-1, 0.5}, Scale::log},
                   {"b", -40, 80, {0, 5}, Scale::log},
                   {"c_0", -3, 3, {0, 0.3}},
                   {"c_1", -3, 3, {-0.3, 0.3}},
                   {"d_1", -10, 80, {20, 30, 45}, Scale::log},
                   {"f_1", 0.01, 5, {0.3, 1}}},
    .output = "y",
    .output_meaning = "what is measured",
};

}  // namespace fitting::laws

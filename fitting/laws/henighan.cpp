#include "fitting/law.h"

namespace fitting::laws {

extern const Law henighan;
const Law henighan = {
    .name = "henighan",
    .title = "loss of one quantity, with a floor",
    .source = "Henighan et al. 2020, arXiv 2010.14701",
    .formula = "L_inf + (x_0 / x)^alpha",
    .variables = {{"x", "what is scaled: parameters, tokens or FLOPs"}},
    .parameters = {{"L_inf", -20, 5, {-1, 0.5}, Scale::log},
                   {"x_0", -40, 120, {5, 15, 25}, Scale::log},
                   {"alpha", 1e-6, 3, {0.1, 0.3, 0.6}}},
};

}  // namespace fitting::laws

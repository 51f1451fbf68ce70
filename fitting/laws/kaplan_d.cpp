#include "fitting/law.h"

namespace fitting::laws {

extern const Law kaplan_d;
const Law kaplan_d = {
    .name = "kaplan-d",
    .title = "loss of the size of a data set, for large models with early stopping",
    .source = "Kaplan et al. 2020, arXiv 2001.08361, Eq. 1.2",
    .formula = "(D_c / D)^alpha_D",
    .variables = {{"D", "tokens of the data set"}},
    .parameters = {{"alpha_D", 1e-6, 3, {0.05, 0.1, 0.3}},
                   {"D_c", 0, 200, {20, 30, 40}, Scale::log}},
};

}  // namespace fitting::laws

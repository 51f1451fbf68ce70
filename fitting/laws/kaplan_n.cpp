#include "fitting/law.h"

namespace fitting::laws {

extern const Law kaplan_n;
const Law kaplan_n = {
    .name = "kaplan-n",
    .title = "loss of parameters, with data enough",
    .source = "Kaplan et al. 2020, arXiv 2001.08361, Eq. 1.1",
    .formula = "(N_c / N)^alpha_N",
    .variables = {{"N", "parameters without embeddings"}},
    .parameters = {{"alpha_N", 1e-6, 3, {0.05, 0.1, 0.3}},
                   {"N_c", 0, 200, {20, 30, 40}, Scale::log}},
};

}  // namespace fitting::laws

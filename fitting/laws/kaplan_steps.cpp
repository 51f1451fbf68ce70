#include "fitting/law.h"

namespace fitting::laws {

extern const Law kaplan_steps;
const Law kaplan_steps = {
    .name = "kaplan-steps",
    .title = "loss of parameters and steps",
    .source = "Kaplan et al. 2020, arXiv 2001.08361, Eq. 1.6",
    .formula = "(N_c / N)^alpha_N + (S_c / S)^alpha_S",
    .variables = {{"N", "parameters without embeddings"}, {"S", "steps at a batch far above the critical one: S_min"}},
    .parameters = {{"alpha_N", 1e-6, 3, {0.05, 0.1, 0.3}},
                   {"alpha_S", 1e-6, 3, {0.3, 0.7, 1.2}},
                   {"N_c", 0, 200, {20, 30, 40}, Scale::log},
                   {"S_c", -20, 60, {4, 8, 12}, Scale::log}},
};

}  // namespace fitting::laws

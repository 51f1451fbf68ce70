// At a batch B, steps are S = S_min (1 + B_crit / B) and FLOPs C = C_min (1 + B / B_crit).
#include "fitting/law.h"

namespace fitting::laws {

extern const Law kaplan_b_crit;
const Law kaplan_b_crit = {
    .name = "kaplan-b-crit",
    .title = "critical batch of a loss",
    .source = "Kaplan et al. 2020, arXiv 2001.08361, Eq. 1.4",
    .formula = "B_star / L^(1 / alpha_B)",
    .variables = {{"L", "loss, nats a token"}},
    .parameters = {{"B_star", 0, 60, {10, 20, 30}, Scale::log},
                   {"alpha_B", 1e-6, 3, {0.1, 0.2, 0.5}}},
    .output = "B",
    .output_meaning = "tokens a batch",
};

}  // namespace fitting::laws

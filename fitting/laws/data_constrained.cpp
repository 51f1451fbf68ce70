// N' and D' are the parameters and tokens that would do the same without repetition; G (G U_D)^(beta / alpha) is the size for which U_D
// tokens are compute-optimal. The paper froze the law of one epoch and fitted R_D_star and R_N_star alone. Its minimum is shallow:
// report how the objective runs along R_D_star, not one number.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law data_constrained;
const Law data_constrained = {
    .name = "data-constrained",
    .title = "loss of parameters and tokens, some of them read again",
    .source = "Muennighoff et al. 2023, arXiv 2305.16264, Eq. 5 and 6",
    .formula =
        "U_D = min(U, D); R_D = D / U_D - 1; D' = U_D + U_D * R_D_star * (1 - exp(-R_D / R_D_star)); "
        "G = (alpha * A / (beta * B))^(1 / (alpha + beta)); U_N = min(N, G * (G * U_D)^(beta / alpha)); R_N = N / U_N - 1; "
        "N' = U_N + U_N * R_N_star * (1 - exp(-R_N / R_N_star)); "
        "E + A / N'^alpha + B / D'^beta",
    .variables = {{"N", "parameters, embeddings included"},
                  {"D", "training tokens, repetitions counted"},
                  {"U", "distinct training tokens"}},
    .parameters = {{"A", -20, 60, {5, 8}, Scale::log},
                   {"B", -20, 60, {5, 8}, Scale::log},
                   {"E", -20, 5, {0.5}, Scale::log},
                   {"alpha", 1e-6, 3, {0.35}},
                   {"beta", 1e-6, 3, {0.35}},
                   {"R_D_star", -5, 12, {0, 1.9, 2.6, 3, 3.8, 4.6}, Scale::log},
                   {"R_N_star", -5, 12, {0, 0.5, 1.9, 2.6, 3}, Scale::log}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

// P below each of P_w, P_a and P_kv. A form to fit: the constants C_w, C_a and C_kv were not found.
#include <limits>

#include "fitting/law.h"

namespace fitting::laws {

extern const Law kumar_unified;
const Law kumar_unified = {
    .name = "kumar-unified",
    .title = "loss of bits in training and after",
    .source = "Kumar et al. 2024, arXiv 2411.04330",
    .formula =
        "f_w = 1 - exp(-P_w / gamma_w); f_a = 1 - exp(-P_a / gamma_a); f_kv = 1 - exp(-P_kv / gamma_kv); N_eff = N * f_w * f_a * f_kv; "
        "robust = (1 - exp(-C_w * (P_w - P))) * (1 - exp(-C_a * (P_a - P))) * (1 - exp(-C_kv * (P_kv - P))); "
        "delta = C_T * exp(-P / gamma_post) * D^gamma_D / N_eff^gamma_N * robust; A / N_eff^alpha + B / D^beta + E + delta",
    .variables = {{"N", "parameters without embeddings"},
                  {"D", "training tokens"},
                  {"P_w", "bits of weights", std::numeric_limits<double>::infinity()},
                  {"P_a", "bits of activations", std::numeric_limits<double>::infinity()},
                  {"P_kv", "bits of keys and values", std::numeric_limits<double>::infinity()},
                  {"P", "bits of weights after training"}},
    .parameters = {{"A", -20, 60, {6}, Scale::log},
                   {"B", -20, 60, {7}, Scale::log},
                   {"E", -20, 5, {0.5, 1}, Scale::log},
                   {"alpha", 1e-6, 3, {0.4}},
                   {"beta", 1e-6, 3, {0.4}},
                   {"gamma_w", 0.05, 50, {1, 2.5}},
                   {"gamma_a", 0.05, 50, {1, 2.5}},
                   {"gamma_kv", 0.05, 50, {1, 2.5}},
                   {"C_T", -40, 40, {-3, 0}, Scale::log},
                   {"gamma_D", 1e-6, 3, {0.5}},
                   {"gamma_N", 1e-6, 3, {0.3}},
                   {"gamma_post", 0.05, 50, {0.5, 2}},
                   {"C_w", -10, 10, {0}, Scale::log},
                   {"C_a", -10, 10, {0}, Scale::log},
                   {"C_kv", -10, 10, {0}, Scale::log}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

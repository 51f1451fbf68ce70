#include "fitting/law.h"

namespace fitting::laws {

extern const Law frantar_sparse;
const Law frantar_sparse = {
    .name = "frantar-sparse",
    .title = "loss of sparse models",
    .source = "Frantar et al. 2023, arXiv 2309.08520",
    .formula = "(a_S * (1 - S)^b_S + c_S) / N^b_N + (a_D / D)^b_D + c",
    .variables = {{"N", "parameters that are not zero"}, {"D", "training tokens"}, {"S", "share of parameters that are zero"}},
    .parameters = {{"a_S", -20, 60, {0, 4}, Scale::log},
                   {"b_S", 1e-6, 3, {0.5, 1}},
                   {"c_S", -20, 60, {0, 4}, Scale::log},
                   {"b_N", 1e-6, 3, {0.2, 0.4}},
                   {"a_D", -20, 80, {15, 20}, Scale::log},
                   {"b_D", 1e-6, 3, {0.2, 0.4}},
                   {"c", -20, 5, {-0.5, 0.5}, Scale::log}},
};

}  // namespace fitting::laws

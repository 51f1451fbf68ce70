#include "fitting/law.h"

namespace fitting::laws {

extern const Law porian;
const Law porian = {
    .name = "porian",
    .title = "best size of compute, as differences between set-ups are removed",
    .source = "Porian et al. 2024, arXiv 2406.19146",
    .formula = "k * C^p",
    .variables = {{"C", "training FLOPs"}},
    .parameters = {{"k", -80, 80, {-5, 0, 5}, Scale::log},
                   {"p", -3, 3, {-0.3, 0.3, 0.6}}},
    .output = "N",
    .output_meaning = "parameters",
};

}  // namespace fitting::laws

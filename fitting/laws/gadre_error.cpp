#include "fitting/law.h"

namespace fitting::laws {

extern const Law gadre_error;
const Law gadre_error = {
    .name = "gadre-error",
    .title = "downstream error of loss",
    .source = "Gadre et al. 2024, arXiv 2403.08540",
    .formula = "epsilon - k * exp(-gamma * L)",
    .variables = {{"L", "validation loss, nats a token"}},
    .parameters = {{"epsilon", 0, 2, {0.5, 1}},
                   {"k", -20, 20, {0, 2}, Scale::log},
                   {"gamma", 0, 20, {0.3, 1, 3}}},
    .output = "error",
    .output_meaning = "top-1 error, averaged over tasks",
};

}  // namespace fitting::laws

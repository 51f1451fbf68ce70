// The hyperbola (S / S_min - 1) (X / X_min - 1) = 1 with X = B S examples and B_crit = X_min / S_min.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law mccandlish;
const Law mccandlish = {
    .name = "mccandlish",
    .title = "steps to a loss, of batch",
    .source = "McCandlish et al. 2018, arXiv 1812.06162",
    .formula = "S_min * (1 + B_crit / B)",
    .variables = {{"B", "examples or tokens a batch"}},
    .parameters = {{"S_min", -20, 60, {4, 8, 12}, Scale::log},
                   {"B_crit", -20, 60, {4, 8, 12, 16}, Scale::log}},
    .output = "S",
    .output_meaning = "steps to the loss",
};

}  // namespace fitting::laws

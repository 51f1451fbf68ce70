// epsilon_0 is the error of guessing.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law rosenfeld;
const Law rosenfeld = {
    .name = "rosenfeld",
    .title = "error of parameters and data, with the plateau of small ones",
    .source = "Rosenfeld et al. 2020, arXiv 1909.12673",
    .formula = "e = a / N^alpha + b / D^beta + c; epsilon_0 * e / sqrt(e^2 + eta^2)",
    .variables = {{"N", "parameters"}, {"D", "size of the data set"}},
    .parameters = {{"a", -20, 60, {2, 5, 8}, Scale::log},
                   {"b", -20, 60, {2, 5, 8}, Scale::log},
                   {"c", -20, 5, {-3, 0}, Scale::log},
                   {"alpha", 1e-6, 3, {0.3, 0.6}},
                   {"beta", 1e-6, 3, {0.3, 0.6}},
                   {"epsilon_0", -10, 10, {0, 2}, Scale::log},
                   {"eta", -10, 20, {0, 2}, Scale::log}},
    .output = "error",
    .output_meaning = "error, or loss",
};

}  // namespace fitting::laws

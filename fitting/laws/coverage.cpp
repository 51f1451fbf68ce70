#include "fitting/law.h"

namespace fitting::laws {

extern const Law coverage;
const Law coverage = {
    .name = "coverage",
    .title = "share of problems that some of k samples solves",
    .source = "Brown et al. 2024, arXiv 2407.21787",
    .formula = "exp(a * k^b)",
    .variables = {{"k", "samples of a problem"}},
    .parameters = {{"a", -100, 0, {-2, -0.5}},
                   {"b", -5, 0, {-0.5, -0.1}}},
    .output = "coverage",
    .output_meaning = "share of problems",
};

}  // namespace fitting::laws

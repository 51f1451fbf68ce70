#include "fitting/law.h"

namespace fitting::laws {

extern const Law kaplan_n_opt;
const Law kaplan_n_opt = {
    .name = "kaplan-n-opt",
    .title = "best size of compute",
    .source = "Kaplan et al. 2020, arXiv 2001.08361, Fig. 14",
    .formula = "k * (C / 8.64e19)^p",
    .variables = {{"C", "training FLOPs at a batch far below the critical one"}},
    .parameters = {{"k", 0, 80, {10, 20, 30}, Scale::log},
                   {"p", -3, 3, {0.3, 0.7}}},
    .output = "N",
    .output_meaning = "parameters without embeddings",
};

}  // namespace fitting::laws

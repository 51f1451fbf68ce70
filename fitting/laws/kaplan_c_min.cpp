// C_c is in PF-days: one is 1e15 FLOP/s for a day, 8.64e19 FLOPs. Of compute at a fixed batch the form is the same.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law kaplan_c_min;
const Law kaplan_c_min = {
    .name = "kaplan-c-min",
    .title = "loss of compute, spent at the best size and a small batch",
    .source = "Kaplan et al. 2020, arXiv 2001.08361, Eq. 1.3",
    .formula = "(C_c * 8.64e19 / C)^alpha_C",
    .variables = {{"C", "training FLOPs at a batch far below the critical one"}},
    .parameters = {{"alpha_C", 1e-6, 3, {0.02, 0.05, 0.1}},
                   {"C_c", -60, 100, {10, 20, 30}, Scale::log}},
};

}  // namespace fitting::laws

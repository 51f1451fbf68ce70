// Without training FLOPs: its D is the size of a data set, which may be read many times with dropout until the loss rises. Read
// as the law of one epoch, C = 6 N D would give N ~ C^0.575 where the paper measured C^0.73.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law kaplan;
const Law kaplan = {
    .name = "kaplan",
    .title = "loss of parameters and the size of a data set, trained to early stopping",
    .source = "Kaplan et al. 2020, arXiv 2001.08361, Eq. 1.5",
    .formula = "((N_c / N)^(alpha_N / alpha_D) + D_c / D)^alpha_D",
    .variables = {{"N", "parameters without embeddings"}, {"D", "tokens of the data set: epochs do not count"}},
    .parameters = {{"alpha_N", 1e-6, 3, {0.05, 0.1, 0.3}},
                   {"alpha_D", 1e-6, 3, {0.05, 0.1, 0.3}},
                   {"N_c", 0, 120, {20, 32, 44}, Scale::log},
                   {"D_c", 0, 120, {20, 30, 40}, Scale::log}},
};

}  // namespace fitting::laws

// Along one run, not over the ends of many: where its learning rate falls to zero at the end the curve bends below any power law.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law loss_curve;
const Law loss_curve = {
    .name = "loss-curve",
    .title = "loss along a run, for fit --along",
    .source = "Henighan et al. 2020, arXiv 2010.14701, Eq. 1.1, of tokens",
    .formula = "E + B / D^beta",
    .variables = {{"D", "tokens so far"}},
    .parameters = {{"B", -20, 60, {0, 3, 6, 10}, Scale::log},
                   {"E", -20, 5, {-1, 0, 0.5, 1}, Scale::log},
                   {"beta", 1e-6, 3, {0.1, 0.3, 0.6}}},
};

}  // namespace fitting::laws

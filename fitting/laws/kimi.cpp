// k is the loss at 1 PF-day. Between two architectures the compute multiplier is (k1 / k2)^(1 / p1) C2^(p2 / p1 - 1): one number holds
// only where it was measured.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law kimi;
const Law kimi = {
    .name = "kimi",
    .title = "loss of compute, of one architecture",
    .source = "Kimi Linear 2025, arXiv 2510.26692",
    .formula = "k / (C / 8.64e19)^p",
    .variables = {{"C", "training FLOPs"}},
    .parameters = {{"k", -20, 20, {0, 1, 2}, Scale::log},
                   {"p", 1e-6, 3, {0.05, 0.2}}},
};

}  // namespace fitting::laws

// phi: what a repetition is worth; 1 is as much as parameters of their own, 0 nothing.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law looped;
const Law looped = {
    .name = "looped",
    .title = "loss of models that repeat a block",
    .source = "Schwethelm et al. 2026, arXiv 2604.21106",
    .formula = "N' = N_once + r^phi * N_rec; E + A / N'^alpha + B / D^beta",
    .variables = {{"N_once", "parameters used once"},
                  {"N_rec", "parameters of the block that repeats"},
                  {"r", "times the block runs"},
                  {"D", "training tokens"}},
    .parameters = {{"A", -20, 60, {5, 10}, Scale::log},
                   {"B", -20, 60, {5, 10}, Scale::log},
                   {"E", -20, 5, {-1, 0, 0.5}, Scale::log},
                   {"alpha", 1e-6, 3, {0.3, 0.6}},
                   {"beta", 1e-6, 3, {0.3, 0.6}},
                   {"phi", 0, 1.5, {0.2, 0.6, 1}}},
    .training_flops = "6 * (N_once + r * N_rec) * D",
};

}  // namespace fitting::laws

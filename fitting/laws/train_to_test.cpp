// Of k samples drawn at test time. The budget 6 N D + 2 N t k Q (tokens t of a sample, queries Q) is the question's inference.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law train_to_test;
const Law train_to_test = {
    .name = "train-to-test",
    .title = "loss of parameters, tokens and samples at test time",
    .source = "after Roberts et al. 2026, arXiv 2604.01411; the term of samples is a form to fit",
    .formula = "E + A / N^alpha + B / D^beta + H / k^gamma",
    .variables = {{"N", "parameters, embeddings included"}, {"D", "training tokens"}, {"k", "samples of a task"}},
    .parameters = {{"A", -20, 60, {5, 10}, Scale::log},
                   {"B", -20, 60, {5, 10}, Scale::log},
                   {"E", -20, 5, {-1, 0, 0.5}, Scale::log},
                   {"alpha", 1e-6, 3, {0.3, 0.6}},
                   {"beta", 1e-6, 3, {0.3, 0.6}},
                   {"H", -20, 20, {-1, 1}, Scale::log},
                   {"gamma", 1e-6, 5, {0.3, 1}}},
    .training_flops = "6 * N * D",
};

}  // namespace fitting::laws

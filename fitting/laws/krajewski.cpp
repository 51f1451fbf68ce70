// Without training FLOPs: how many of N work for a token, and what routing costs, depends on the model. Say k of C = k N D.
#include "fitting/law.h"

namespace fitting::laws {

extern const Law krajewski;
const Law krajewski = {
    .name = "krajewski",
    .title = "loss of mixtures of experts of a granularity",
    .source = "Krajewski et al. 2024, arXiv 2402.07871, Eq. 9",
    .formula = "c + (g / G^gamma + a) / N^alpha + b / D^beta",
    .variables = {{"N", "parameters of all experts, without embeddings"},
                  {"D", "training tokens"},
                  {"G", "granularity: width of the feed-forward layer over that of an expert"}},
    .parameters = {{"a", -20, 60, {2, 5, 8}, Scale::log},
                   {"b", -20, 60, {2, 5, 8}, Scale::log},
                   {"c", -20, 5, {-1, 0, 0.5}, Scale::log},
                   {"g", -20, 60, {0, 2}, Scale::log},
                   {"gamma", 1e-6, 5, {0.5, 1}},
                   {"alpha", 1e-6, 3, {0.1, 0.3}},
                   {"beta", 1e-6, 3, {0.1, 0.3}}},
    .huber = 0.1,  // the paper's
};

}  // namespace fitting::laws

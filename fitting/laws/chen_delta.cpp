#include "fitting/law.h"

namespace fitting::laws {

extern const Law chen_delta;
const Law chen_delta = {
    .name = "chen-delta",
    .title = "rise of loss by quantisation-aware training",
    .source = "Chen et al. 2025, arXiv 2505.14302",
    .formula = "k * D^gamma_D * log2(G)^gamma_G / N^gamma_N",
    .variables = {{"N", "parameters, embeddings included"},
                  {"D", "training tokens"},
                  {"G", "weights of a group that share a scale; the real length for a channel or tensor"}},
    .parameters = {{"k", -40, 40, {-3, 0}, Scale::log},
                   {"gamma_N", 1e-6, 3, {0.1, 0.3}},
                   {"gamma_D", 1e-6, 3, {0.05, 0.2}},
                   {"gamma_G", 1e-6, 3, {0.3, 0.8}}},
    .output = "delta",
    .output_meaning = "nats a token above training in 16 bits",
};

}  // namespace fitting::laws

#include "fitting/law.h"

namespace fitting::laws {

extern const Law ouyang;
const Law ouyang = {
    .name = "ouyang",
    .title = "rise of loss by quantisation after training",
    .source = "Ouyang et al. 2024, arXiv 2411.17691",
    .formula = "k * D^beta / (N^alpha * P^gamma)",
    .variables = {{"N", "parameters without embeddings"}, {"D", "training tokens"}, {"P", "bits of weights after training"}},
    .parameters = {{"k", -40, 40, {-5, 0, 5}, Scale::log},
                   {"alpha", 1e-6, 3, {0.2, 0.5}},
                   {"beta", 1e-6, 3, {0.2, 0.5}},
                   {"gamma", 0, 30, {2, 5}}},
    .output = "delta",
    .output_meaning = "nats a token above the model of 16 bits",
};

}  // namespace fitting::laws

#include "fitting/law.h"

namespace fitting::laws {

extern const Law kumar_ptq;
const Law kumar_ptq = {
    .name = "kumar-ptq",
    .title = "rise of loss by quantisation after training",
    .source = "Kumar et al. 2024, arXiv 2411.04330",
    .formula = "C_T * D^gamma_D / N^gamma_N * exp(-P / gamma_post)",
    .variables = {{"N", "parameters without embeddings"}, {"D", "training tokens"}, {"P", "bits of weights after training"}},
    .parameters = {{"C_T", -40, 40, {-5, 0, 5}, Scale::log},
                   {"gamma_D", 1e-6, 3, {0.3, 0.6}},
                   {"gamma_N", 1e-6, 3, {0.3, 0.6}},
                   {"gamma_post", 0.05, 50, {0.5, 2}}},
    .output = "delta",
    .output_meaning = "nats a token above the unquantised model",
};

}  // namespace fitting::laws

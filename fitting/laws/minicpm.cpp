#include "fitting/law.h"

namespace fitting::laws {

extern const Law minicpm;
const Law minicpm = {
    .name = "minicpm",
    .title = "best parameters a token of compute",
    .source = "Hu et al. 2024 (MiniCPM), arXiv 2404.06395",
    .formula = "k * (C / 6)^eta",
    .variables = {{"C", "training FLOPs"}},
    .parameters = {{"k", -80, 80, {-5, 0, 5}, Scale::log},
                   {"eta", -3, 3, {-0.1, 0.1}}},
    .output = "N_per_D",
    .output_meaning = "parameters a token",
};

}  // namespace fitting::laws

#include "fitting/law.h"

namespace fitting::laws {

extern const Law spectra;
const Law spectra = {
    .name = "spectra",
    .title = "loss of parameters at one number of tokens",
    .source = "Kaushal et al. 2024 (Spectra), arXiv 2407.12327, Eq. 1",
    .formula = "A / N^alpha + E",
    .variables = {{"N", "parameters"}},
    .parameters = {{"A", -20, 60, {2, 5, 8}, Scale::log},
                   {"alpha", 1e-6, 3, {0.1, 0.3, 0.6}},
                   {"E", -20, 5, {-1, 0, 0.5}, Scale::log}},
};

}  // namespace fitting::laws

#pragma once

#include <string>
#include <vector>

#include "core/logs/run_table.h"

namespace core {

// Values of the variables asked for (asked_variables) of a file's runs, [run][variable], NaN where
// they are unknown: those of the table, else derived from its others, options.N,
// options.tokens_per_step and sizes in names:
//   B = batch_seqs x seq_len, D = steps x B, D = C / (6 N), N = C / (6 D), C = 6 N D, U = D /
//   epochs.
// Writes to `notes` which rule gave which variable.
std::vector<std::vector<double>> asked_values(const RunTable& table,
                                              const ObservationOptions& options,
                                              std::vector<std::string>& notes);

}  // namespace core

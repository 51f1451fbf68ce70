#pragma once

#include "fitting/runs/runs.h"

namespace fitting {

// Laws of settings (Law::setting) are of the best of them: of the runs that share N, D and the law's variables, those whose loss
// is within a share of the least make one row, the geometric mean of their settings (Li et al. 2025 average what lies within
// 0.25 %: the least loss alone is noisy). All others are among the dropped. No change without a column of losses, or where no two
// runs share them.
void take_best_settings(const Law& law, double share, Runs& runs);

}  // namespace fitting

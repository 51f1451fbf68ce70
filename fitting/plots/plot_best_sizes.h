#pragma once

#include <string>
#include <vector>

#include "fitting/best_sizes/envelope.h"
#include "fitting/plots/figure.h"
#include "fitting/best_sizes/isoflop.h"

namespace fitting {

// Loss over size at each budget, with parabolas and their vertices: Hoffmann et al. 2022, figure 3. `runs` is the title's last line.
Figure isoflop_fit_figure(const ComputeRuns& runs, const IsoflopFit& fit, const std::string& source);

// Loss along training over compute, with the envelope: figure 2.
Figure envelope_figure(const std::vector<LossCurve>& curves, const EnvelopeFit& fit, const std::string& source);

// The best size over compute and the line through it.
Figure best_size_figure(const BestSizes& fit, const std::string& source);

}  // namespace fitting

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fitting/best_sizes/best_sizes.h"

namespace fitting {

// Final losses of runs and what they took.
struct ComputeRuns {
  std::vector<double> C, N, D, L;  // FLOPs, parameters, tokens, loss; positive
  std::size_t size() const { return C.size(); }
};

// What goes through the runs of a budget: a parabola, or a curve through each run that bends as they do (Porian et al. 2024).
enum class Through : std::uint8_t { parabola, akima };
enum class Weights : std::uint8_t { equal, by_spread };

struct IsoflopOptions {
  double within = 0.05;               // by which C of one budget may differ
  std::optional<double> near = {};    // only runs whose size is within this factor of the budget's best run
  Through through = Through::parabola;
  Weights weights = Weights::equal;   // by_spread: 1 / variance of ln N* over the draws (Porian et al. 2024)
  std::int64_t bootstrap = 1000;      // draws
  std::uint64_t seed = 1;
  double confidence = 0.95;
};

// A loss over the logarithm of sizes or tokens.
struct LossOver {
  double vertex = 0.0, value = 0.0;  // where it is least, and what it is there; not finite where it has no such place
  std::function<double(double)> at;
};

// The runs of one budget and the curves through them.
struct IsoflopCurve {
  double C = 0.0;
  std::vector<std::size_t> rows;
  LossOver of_N, of_D;
  std::string refused;   // why its vertex is not used, or ""
};

struct IsoflopFit {
  BestSizes sizes;
  std::vector<IsoflopCurve> curves;  // refused ones too
};

// Approach 2 of Hoffmann et al. 2022 (section 3.2): a parabola of the loss over ln N at each budget, its vertex N*(C), and a
// line of ln N* on ln C; D* likewise from parabolas over ln D. Through::akima puts
// Akima's curve in the parabola's place. A curve of fewer than 4 runs, without a minimum, or with a vertex
// outside its runs is refused. Draws take the runs of each budget anew, with replacement.
//
// The vertex is that of the law L(N, D) only where alpha = beta and the sizes lie centred about it in ln N: else it is off by a
// factor, the same at each budget where the grids move with the optimum (arXiv 2603.22339), which leaves a right and the
// coefficients wrong.
//
// Throws InputError where fewer than two budgets have a vertex, naming the first refused one.
IsoflopFit fit_isoflop(const ComputeRuns& runs, const IsoflopOptions& options);

}  // namespace fitting

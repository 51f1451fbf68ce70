#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fitting/best_sizes/best_sizes.h"

namespace fitting {

// The loss of a run as it trains.
struct LossCurve {
  std::string run;
  double N = 0.0;
  std::vector<double> C, D, L;  // of its points, C ascending
};

struct EnvelopeOptions {
  std::size_t computes = 1500;    // evenly in ln C
  double last = 1.0;              // share of each run, by tokens, whose points are used: 0.15 with cosine schedules
  std::size_t smooth = 1;         // points of a run whose mean stands for the middle one
  std::int64_t bootstrap = 200;   // draws of runs
  std::uint64_t seed = 1;
  double confidence = 0.95;
};

// The run of least loss at a compute.
struct EnvelopePoint {
  std::size_t curve = 0;
  double C = 0.0, D = 0.0, L = 0.0;
};

struct EnvelopeFit {
  BestSizes sizes;                // its points: one a run on the envelope, at the middle of its computes
  std::vector<EnvelopePoint> envelope;  // those that were fitted
};

// Approach 1 of Hoffmann et al. 2022 (section 3.1): at each of many computes the run of least loss (between its points the loss
// is taken as a power of C), then lines of its ln N and ln D on ln C. Only computes at which a smaller and a larger run have
// losses too: at the others the best size is not among the runs. Sizes come in steps, so that with k sizes on the envelope a is
// low by up to 1 part in k^2. Draws take runs anew, with replacement.
//
// Throws InputError where fewer than two sizes are on the envelope.
EnvelopeFit fit_envelope(const std::vector<LossCurve>& curves, const EnvelopeOptions& options);

}  // namespace fitting

#pragma once

#include "simulator/check/measurement.h"
#include "simulator/check/translate.h"
#include "simulator/step.h"

namespace simulator {

// What a translated run is predicted to take and to hold.
struct Prediction {
  double step_time_s = 0.0, low_s = 0.0, high_s = 0.0;  // with its interval
  Fits fits = Fits::yes;
  std::vector<StageMemory> stages;  // of the pipeline ranks
  double peak_memory_GiB = 0.0, memory_limit_GiB = 0.0;
  core::Grain grain = core::Grain::mixed;

  // The figure that a source of this kind would read, of the rank that it reads it on.
  double memory_GiB(MemoryKind kind, MemoryRank rank) const;
};

// Prices a run on a bench, which holds the constants that a calibration may have changed. Graphs
// whose cells alone are many are simulated at cell grain, as `grain` of the answer says.
Prediction predict(const Translation& run, const Bench& bench);

// A translated run whose step time alone is asked for, again and again (RepeatedStep), at the grain of predict.
RepeatedStep repeated(const Translation& run);

}  // namespace simulator

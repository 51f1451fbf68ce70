#pragma once

#include <string>

#include "simulator/step.h"

namespace simulator {

// A Chrome trace (opens in Perfetto): one process a rank, one thread a stream, counters for memory by term. Times in
// microseconds.
std::string chrome_trace(const SimulatedStep& step);

// CSV: rank, time_s, memory_GiB, a line whenever a rank's memory changes.
std::string memory_timeline_csv(const SimulatedStep& step);

}  // namespace simulator

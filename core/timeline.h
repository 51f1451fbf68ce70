#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/step_graph.h"
#include "core/units.h"

namespace core {

// Level 4 of the representation: when each operation of a graph ran. Predicted here; a measured run fills the same.
struct Timeline {
  std::vector<SimTime> start, end;  // by OpId, picoseconds from the start of the step
  SimTime makespan = 0;
  bool operator==(const Timeline&) const = default;
};

// Text form, a line an operation: "op start end".
std::string to_text(const Timeline& timeline);
Timeline parse_timeline(std::string_view text);  // throws InputError

// One point of a rank's memory over time: bytes held from `time` on, by term summed.
struct MemoryPoint {
  SimTime time = 0;
  std::int64_t bytes = 0;
};
// Memory of a rank over the step: what it holds all the step and the lives of its tensors. Where one tensor dies and another
// is born at the same time, the death comes first.
std::vector<MemoryPoint> memory_over_time(const StepGraph& graph, const Timeline& timeline, std::int32_t rank);

}  // namespace core

// Any bytes as a plan, a step graph or a timeline (the first byte chooses): read and written back equal,
// or refused in one line by an InputError. A graph that reads also runs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/graph/step_graph.h"
#include "core/plan/plan.h"
#include "core/timeline.h"
#include "simulator/engine/engine.h"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void read_plan(std::string_view text) {
  const auto plan = core::parse_plan(text, "--plan").plan;
  require(core::parse_plan(core::to_text(plan), "again").plan == plan);
  core::ModelSpec model;
  model.layer_kind.assign(30, 0);
  static_cast<void>(core::why_not(model, plan, 64, 2048));
}

void read_graph(std::string_view text) {
  const auto graph = core::parse_step_graph(text);
  require(core::parse_step_graph(core::to_text(graph)) == graph);
  const std::vector<core::SimTime> durations(graph.specs.size(), 1000);
  const auto free = simulator::run(graph, durations);
  const auto slowed = simulator::run(graph, durations, simulator::Slowdown{0.25, 0.5});
  require(free.makespan <= slowed.makespan);
  for (std::size_t op = 0; op < graph.size(); ++op) {
    require(free.start[op] <= slowed.start[op] && free.end[op] <= slowed.end[op]);
  }
}

void read_timeline(std::string_view text) {
  const auto timeline = core::parse_timeline(text);
  require(core::parse_timeline(core::to_text(timeline)) == timeline);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view text{reinterpret_cast<const char*>(data) + 1, size - 1};
  try {
    switch (data[0]) {
      case 'p': read_plan(text); break;
      case 'g': read_graph(text); break;
      case 't': read_timeline(text); break;
      default: break;
    }
  } catch (const core::InputError& error) {
    require(std::string_view(error.what()).find_first_of("\n\r\x1b") == std::string_view::npos);
  }
  return 0;
}

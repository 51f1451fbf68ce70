#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/step_graph.h"
#include "core/timeline.h"

namespace simulator {

// How much kernels and collectives of one rank slow each other while both run: the share by which the rate falls
// (0.1 = 10 % more time). A property of the GPU and the transport (data/curves, "overlap").
struct Slowdown {
  double compute = 0.0;        // of a kernel beside a collective
  double communication = 0.0;  // of a collective beside a kernel
  bool none() const { return compute == 0.0 && communication == 0.0; }
};

// Runs a step graph: in-order queues, dependencies, collectives that start when the last member arrives. `durations` are
// those of OpSpecs, alone on the GPU. Without slowdown each operation starts at the latest end of what it waits for.
// With slowdown, operations of the data-parallel queue and of the compute queue of one rank that overlap run at reduced
// rates (kept in 1/4096, so that the clock stays whole picoseconds). Deterministic: ties go by operation id.
core::Timeline run(const core::StepGraph& graph,
                   const std::vector<core::SimTime>& durations,
                   const Slowdown& slowdown = {});

// The same into a timeline that is at hand, whose memory is reused.
void run_into(core::Timeline& timeline,
              const core::StepGraph& graph,
              const std::vector<core::SimTime>& durations,
              const Slowdown& slowdown = {});

}  // namespace simulator

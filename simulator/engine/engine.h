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
  bool operator==(const Slowdown&) const = default;
};

// Rates of an operation of the compute queue and of a data-parallel collective while they overlap, in 1/4096 of full speed,
// so that the clock stays whole picoseconds.
struct OverlapRates {
  std::int64_t compute = full_rate, communication = full_rate;
  static constexpr std::int64_t full_rate = 4096;
  bool operator==(const OverlapRates&) const = default;
};
// `kernel_share`: the share k of the operation's time in which kernels run, 1 for a kernel; in the rest tensor-parallel
// communication runs or the host is waited for, and nothing is slowed. The operation takes 1 + k c of its time, in which the
// collective does the work of k (1 + c) / (1 + d) + 1 - k of it (c: compute, d: communication).
OverlapRates overlap_rates(const Slowdown& slowdown, double kernel_share);

// Who slows whom on a rank: its kernels and the collectives of its data-parallel queue, and its kernels and the all-to-alls of
// its expert queue, whose transport may be another (core::Dispatch).
struct Contention {
  Slowdown data, experts;
  Contention(const Slowdown& data_queue = {}, const Slowdown& expert_queue = {}) : data(data_queue), experts(expert_queue) {}
  bool none() const { return data.none() && experts.none(); }
  bool operator==(const Contention&) const = default;
};

// Runs a step graph: in-order queues, dependencies, collectives that start when the last member arrives. `durations` are
// those of OpSpecs, alone on the GPU, `kernel_shares` those of OpSpecs on the compute queue (empty: all 1). Without slowdown
// each operation starts at the latest end of what it waits for. With slowdown, operations of the data-parallel or the expert
// queue and of the compute queue of one rank run at reduced rates while they overlap; a kernel beside both runs at the lower
// of its two rates. Deterministic: ties go by operation id.
core::Timeline run(const core::StepGraph& graph,
                   const std::vector<core::SimTime>& durations,
                   const Contention& contention = {},
                   const std::vector<double>& kernel_shares = {});

// The same into a timeline that is at hand, whose memory is reused.
void run_into(core::Timeline& timeline,
              const core::StepGraph& graph,
              const std::vector<core::SimTime>& durations,
              const Contention& contention = {},
              const std::vector<double>& kernel_shares = {});

}  // namespace simulator

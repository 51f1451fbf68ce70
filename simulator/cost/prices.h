#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/framework.h"
#include "core/graph/lower.h"
#include "core/hardware/topology.h"
#include "core/plan/plan.h"
#include "simulator/cost/cost.h"
#include "simulator/engine/engine.h"

namespace simulator {

// What a duration rests on, for --explain and measured_share.
struct Price {
  core::SimTime duration = 0;
  Origin origin = Origin::roofline;
  std::string_view algorithm;  // of a collective
  double kernel_share = 1.0;   // of the time on the compute queue: kernels run, and overlap slows them
};

// What durations are multiplied by on a system that measured runs have calibrated: of kernels, of what travels on links.
struct Corrections {
  double kernels = 1.0, communication = 1.0;
};

// A machine that operations are priced on. `slowest`: how much longer than on the mean GPU kernels take on the slowest of
// those that wait for each other (simulator/spread.h).
struct Machine {
  const core::Topology& topology;
  const Curves& curves;
  double slowest = 1.0;
  Corrections corrections = {};

  core::SimTime time_of(const Cost& collective) const {
    return core::to_sim_time(corrections.communication * collective.time);
  }
};

// Links of a communicator of a graph: a pair for sends, a group else.
core::GroupLinks links_of(const core::CommGroup& group, const core::Topology& topology);

// What makes of an operation's cost its price. Of a kernel: corrected (slowest slowed held_back cost + gap); of a collective:
// corrected slowed cost.
struct PriceFactors {
  double slowest = 1.0;    // the slowest GPU of those that wait for each other
  double slowed = 1.0;     // by what is made to run beside it
  double held_back = 1.0;  // by the power limit, all through a step
  double corrected = 1.0;  // by runs that calibrated the system
  core::Seconds gap;       // before the next kernel
  core::Seconds priced(const Cost& cost) const { return corrected * (slowest * slowed * held_back * cost.time + gap); }
};
PriceFactors factors_of(const core::OpSpec& spec, const Machine& machine);

// Time of one operation that is not a cell nor a host wait: its kernel and the launch gap, or its collective.
Price price_of(const core::OpSpec& spec, const std::vector<core::CommGroup>& groups, const Machine& machine);

// Time of serial operations, as the engine runs them: kernels one after another, collectives between them, those that
// overlap beside the next kernel.
// Specs of collectives and of waits for the host bear the mark of their kind. Kernels and all-to-alls of experts that run
// beside each other slow each other as `experts` says.
core::SimTime chain_time(const std::vector<core::ChainOp>& chain,
                         const std::vector<core::SimTime>& durations,
                         const Slowdown& experts);
// The mark of an operation's queue, to be joined to its spec; 0 for kernels.
std::uint32_t chain_mark(core::Stream stream);
inline constexpr std::uint32_t chain_host_mark = 1u << 29;  // of a wait (core::is_wait), on the compute queue
// Time of a forward and a backward chain that overlap, queued as core::interleave says.
core::SimTime pair_time(const std::vector<core::ChainOp>& forward,
                        const std::vector<core::ChainOp>& backward,
                        const std::vector<core::SimTime>& forward_durations,
                        const std::vector<core::SimTime>& backward_durations,
                        const Slowdown& experts);
// Time of a cell of a graph from the durations of its specs.
core::SimTime cell_time(const core::StepGraph& graph, const core::OpSpec& cell, const std::vector<core::SimTime>& durations,
                        const Slowdown& experts);

// How long kernels take while data-parallel collectives slow them from start to end.
// When a body ends whose kernels take `kernels` and whose launches take `launches` of the host: the later of both, or their
// sum where each launch waits for the kernel before it.
core::SimTime host_end(const core::Framework& framework, core::SimTime kernels, core::SimTime launches);

core::SimTime slowed_kernel(core::SimTime alone, const Slowdown& slowdown);
// Share of a chain's time in which kernels that slow down make it longer, from what it takes (`slowed`) when all of them are slowed
// so: what is waited for longer than for a kernel, as an exchange of keys beside it or the host, is none. 1 where it takes no time.
double kernel_share(core::SimTime time, core::SimTime slowed, const Slowdown& slowdown);

// Prices of all specs of a graph, alone on the machine.
std::vector<Price> prices_of(const core::StepGraph& graph, const Machine& machine, const core::Framework& framework);
std::vector<core::SimTime> durations_of(const std::vector<Price>& prices);
std::vector<double> kernel_shares_of(const std::vector<Price>& prices);

// How kernels and data-parallel collectives slow each other on a machine.
Slowdown slowdown_of(const Curves& curves);
// The same of the all-to-alls of experts.
Slowdown experts_slowdown(core::Dispatch dispatch, const Curves& curves);
// Both, for a graph.
Contention contention_of(const core::StepGraph& graph, const Curves& curves);

}  // namespace simulator

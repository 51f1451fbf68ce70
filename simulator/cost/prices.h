#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/framework.h"
#include "core/graph/lower.h"
#include "core/hardware/topology.h"
#include "simulator/cost/cost.h"

namespace simulator {

// What a duration rests on, for --explain and measured_share.
struct Price {
  core::SimTime duration = 0;
  Origin origin = Origin::roofline;
  std::string_view algorithm;  // of a collective
};

// A machine that operations are priced on.
struct Machine {
  const core::Topology& topology;
  const Curves& curves;
};

// Links of a communicator of a graph: a pair for sends, a group else.
core::GroupLinks links_of(const core::CommGroup& group, const core::Topology& topology);

// Time of one operation that is not a cell nor a host wait: its kernel and the launch gap, or its collective.
Price price_of(const core::OpSpec& spec, const std::vector<core::CommGroup>& groups, const Machine& machine);

// Time of serial operations, as the engine runs them: kernels one after another, collectives between them, those that
// overlap beside the next kernel.
core::SimTime chain_time(const std::vector<core::ChainOp>& chain, const std::vector<core::SimTime>& durations);

// Prices of all specs of a graph. At cell grain, cells and the collectives beside them slow each other here, by the share of
// the time that both run; at the other grains the engine does it.
std::vector<Price> prices_of(const core::StepGraph& graph,
                             const Machine& machine,
                             const core::Framework& framework,
                             core::Grain grain);
std::vector<core::SimTime> durations_of(const std::vector<Price>& prices);

// t runs beside `other`: t, slowed by `share` while both run. Where a `sibling` (one after the other with t) runs beside
// `other` as well, the two share the time that they overlap it by their lengths.
core::SimTime slowed(core::SimTime t, core::SimTime other, double share, core::SimTime sibling = 0);

}  // namespace simulator

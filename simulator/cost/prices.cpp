#include "simulator/cost/prices.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/graph/interleave.h"

namespace simulator {

namespace {

using core::OpKind;
using core::SimTime;

constexpr std::uint32_t mark_shift = 30, expert_mark = 3, spec_mask = (1u << mark_shift) - 1;

}  // namespace

core::GroupLinks links_of(const core::CommGroup& group, const core::Topology& topology) {
  if (group.name.starts_with("pp")) return topology.pair(group.first, group.first + group.stride);
  return topology.group(group.first, group.stride, group.size);
}

Price price_of(const core::OpSpec& spec, const std::vector<core::CommGroup>& groups, const Machine& machine) {
  Price price;
  if (is_collective(spec.kind)) {
    CORE_ASSERT(spec.group >= 0);
    const auto links = links_of(groups[static_cast<std::size_t>(spec.group)], machine.topology);
    const auto choice = collective_time(collective_of(spec), links, machine.curves);
    price = {core::to_sim_time(choice.cost.time), choice.cost.origin, choice.algorithm};
  } else {
    const auto cost = kernel_time(spec, machine.curves);
    const core::Seconds gap{machine.curves.at("launch.kernel_gap_us") * 1e-6};
    price = {core::to_sim_time(cost.time + gap), cost.origin, {}};
  }
  return price;
}

namespace {

// What the next operation of a chain waits for, as a lane of core/graph/graph_writer.h.
struct ChainLane {
  SimTime last = 0, join = 0, beside = -1;
  SimTime end() const { return std::max({last, join, beside}); }
};

// The queues of a rank that chains run on.
struct ChainQueues {
  SimTime compute = 0;
  std::array<SimTime, 4> collectives{};  // by mark

  void run(ChainLane& lane, const core::ChainOp& op, SimTime duration) {
    const auto mark = op.spec >> mark_shift;
    if (mark == 0) {
      const auto start = std::max(compute, lane.join);
      lane.join = lane.beside >= 0 ? lane.beside : 0;
      lane.beside = -1;
      compute = lane.last = start + duration;
      return;
    }
    const auto end = std::max({collectives[mark], lane.last, lane.join}) + duration;
    collectives[mark] = end;
    lane.join = 0;
    if (op.overlaps_next) {
      if (lane.beside >= 0) lane.join = lane.beside;
      lane.beside = end;
    } else {
      lane.join = lane.last = end;
    }
  }
};

bool hands_over(const core::ChainOp& op) { return op.spec >> mark_shift == expert_mark && !op.overlaps_next; }

}  // namespace

std::uint32_t chain_mark(core::Stream stream) {
  switch (stream) {
    case core::Stream::tensor: return 1u << mark_shift;
    case core::Stream::context: return 2u << mark_shift;
    case core::Stream::expert: return expert_mark << mark_shift;
    default: return 0;
  }
}

SimTime chain_time(const std::vector<core::ChainOp>& chain, const std::vector<SimTime>& durations) {
  ChainQueues queues;
  ChainLane lane;
  for (const auto& op : chain) queues.run(lane, op, durations[op.spec & spec_mask]);
  return std::max(queues.compute, lane.end());
}

SimTime pair_time(const std::vector<core::ChainOp>& forward,
                  const std::vector<core::ChainOp>& backward,
                  const std::vector<SimTime>& forward_durations,
                  const std::vector<SimTime>& backward_durations) {
  ChainQueues queues;
  ChainLane forward_lane, backward_lane;
  for (const auto& next : core::interleave(
           backward.size(), [&](std::size_t i) { return hands_over(backward[i]); }, forward.size(),
           [&](std::size_t i) { return hands_over(forward[i]); })) {
    const auto& op = next.is_forward ? forward[next.index] : backward[next.index];
    queues.run(next.is_forward ? forward_lane : backward_lane, op,
               (next.is_forward ? forward_durations : backward_durations)[op.spec & spec_mask]);
  }
  return std::max({queues.compute, forward_lane.end(), backward_lane.end()});
}

double kernel_share(SimTime kernels, SimTime time) {
  return time > 0 ? static_cast<double>(kernels) / static_cast<double>(time) : 1.0;
}

Slowdown slowdown_of(const Curves& curves) {
  return {curves.at("overlap.compute_slowdown"), curves.at("overlap.comm_slowdown")};
}

std::vector<SimTime> durations_of(const std::vector<Price>& prices) {
  std::vector<SimTime> durations(prices.size());
  for (std::size_t i = 0; i < prices.size(); ++i) durations[i] = prices[i].duration;
  return durations;
}

std::vector<double> kernel_shares_of(const std::vector<Price>& prices) {
  std::vector<double> shares(prices.size());
  for (std::size_t i = 0; i < prices.size(); ++i) shares[i] = prices[i].kernel_share;
  return shares;
}

namespace {

// Chains with collectives marked, as chain_time wants them.
std::vector<core::ChainOp> marked(const std::vector<core::ChainOp>& chain, const core::StepGraph& graph) {
  auto out = chain;
  for (auto& op : out) {
    const auto group = graph.specs[op.spec].group;
    if (group >= 0) op.spec |= chain_mark(core::stream_of(graph.groups[static_cast<std::size_t>(group)]));
  }
  return out;
}

// The origin that most of a chain's time rests on.
Origin chain_origin(const std::vector<core::ChainOp>& chain, const std::vector<Price>& prices) {
  SimTime by_origin[3] = {0, 0, 0};
  for (const auto& op : chain) by_origin[static_cast<int>(prices[op.spec].origin)] += prices[op.spec].duration;
  return static_cast<Origin>(std::max_element(by_origin, by_origin + 3) - by_origin);
}

}  // namespace

SimTime cell_time(const core::StepGraph& graph, const core::OpSpec& cell, const std::vector<SimTime>& durations) {
  const auto chains = core::StepGraph::chains_of(cell);
  const auto first = marked(graph.chains[chains.front()], graph);
  if (chains.size() == 1) return chain_time(first, durations);
  return pair_time(first, marked(graph.chains[chains.back()], graph), durations, durations);
}

std::vector<Price> prices_of(const core::StepGraph& graph, const Machine& machine, const core::Framework& framework) {
  std::vector<Price> prices(graph.specs.size());
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const auto kind = graph.specs[i].kind;
    if (kind != OpKind::cell && kind != OpKind::host) prices[i] = price_of(graph.specs[i], graph.groups, machine);
  }
  auto durations = durations_of(prices);
  const auto host = core::to_sim_time(framework.host_per_kernel);
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const auto& spec = graph.specs[i];
    if (spec.kind != OpKind::host) continue;
    const auto gpu = chain_time(marked(graph.chains[static_cast<std::size_t>(spec.n)], graph), durations);
    prices[i].duration = durations[i] = std::max<SimTime>(0, spec.m * host - gpu);
    prices[i].kernel_share = 0.0;
  }
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const auto& spec = graph.specs[i];
    if (spec.kind != OpKind::cell) continue;
    SimTime kernels = 0;
    std::vector<core::ChainOp> all;
    for (const auto chain : core::StepGraph::chains_of(spec)) {
      all.insert(all.end(), graph.chains[chain].begin(), graph.chains[chain].end());
    }
    for (const auto& op : all) {
      const auto& part = graph.specs[op.spec];
      if (part.group < 0 && part.kind != OpKind::host) kernels += durations[op.spec];
    }
    const auto time = cell_time(graph, spec, durations);
    prices[i] = {time, chain_origin(all, prices), {}, kernel_share(kernels, time)};
  }
  return prices;
}

}  // namespace simulator

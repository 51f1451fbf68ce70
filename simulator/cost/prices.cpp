#include "simulator/cost/prices.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace simulator {

namespace {

using core::OpKind;
using core::SimTime;

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

SimTime chain_time(const std::vector<core::ChainOp>& chain, const std::vector<SimTime>& durations) {
  // Mirrors the lanes of core/graph/lower.cpp.
  SimTime compute = 0, tensor = 0, last = 0, join = 0, beside = -1;
  for (const auto& op : chain) {
    const auto duration = durations[op.spec & ~(1u << 31)];
    if ((op.spec >> 31) == 0) {
      const auto start = std::max(compute, join);
      join = beside >= 0 ? beside : 0;
      beside = -1;
      compute = last = start + duration;
    } else {
      const auto end = std::max({tensor, last, join}) + duration;
      tensor = end;
      join = 0;
      if (op.overlaps_next) {
        if (beside >= 0) join = beside;
        beside = end;
      } else {
        join = last = end;
      }
    }
  }
  return std::max({compute, last, join, beside});
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
    if (graph.specs[op.spec].group >= 0) op.spec |= 1u << 31;
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
    const auto& chain = graph.chains[static_cast<std::size_t>(spec.m)];
    SimTime kernels = 0;
    for (const auto& op : chain) {
      const auto& part = graph.specs[op.spec];
      if (part.group < 0 && part.kind != OpKind::host) kernels += durations[op.spec];
    }
    const auto time = chain_time(marked(chain, graph), durations);
    prices[i] = {time, chain_origin(chain, prices), {}, kernel_share(kernels, time)};
  }
  return prices;
}

}  // namespace simulator

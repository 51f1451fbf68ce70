#include "simulator/cost/prices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/graph/interleave.h"

namespace simulator {

namespace {

using core::OpKind;
using core::SimTime;

// Of parts that are made to run beside each other. Each is slowed all through: SMs are set aside for a whole kernel.
Interference interference_of(core::Mover mover, const Curves& curves) {
  switch (mover) {
    case core::Mover::none: return {};
    case core::Mover::kernels: return simulator::interference_of(Transport::nccl, curves);
    case core::Mover::copy_engine: return simulator::interference_of(Transport::copy_engine, curves);
  }
  CORE_ASSERT(false);
}

// Kernels that the tensor cores limit run slower all through a step than one by one: the GPU lowers its clock to stay within its
// power limit.
double held_back(OpKind kind, const Curves& curves) {
  const bool computes = kind == OpKind::gemm || kind == OpKind::attention || kind == OpKind::scan;
  return computes ? 1.0 / curves.find("sustained.rate").value_or(1.0) : 1.0;
}

constexpr std::uint32_t mark_shift = 30, expert_mark = 3, spec_mask = chain_host_mark - 1;

}  // namespace

core::GroupLinks links_of(const core::CommGroup& group, const core::Topology& topology) {
  if (group.name.starts_with("pp")) return topology.pair(group.first, group.first + group.stride);
  return topology.group(group.first, group.stride, group.size);
}

PriceFactors factors_of(const core::OpSpec& spec, const Machine& machine) {
  PriceFactors f;
  const auto beside = interference_of(spec.beside, machine.curves);
  if (is_collective(spec.kind)) {
    f.slowed = 1.0 + beside.comm_slowdown;
    f.corrected = machine.corrections.communication;
    return f;
  }
  // GPUs differ in how fast their kernels run, not in what their hosts do.
  f.slowest = is_copy(spec.kind) || spec.kind == OpKind::host_optimizer ? 1.0 : machine.slowest;
  f.slowed = 1.0 + beside.compute_slowdown;
  f.held_back = held_back(spec.kind, machine.curves);
  f.corrected = is_copy(spec.kind) ? machine.corrections.communication : machine.corrections.kernels;
  f.gap = core::Seconds{machine.curves.at("launch.kernel_gap_us") * 1e-6};
  return f;
}

Price price_of(const core::OpSpec& spec, const std::vector<core::CommGroup>& groups, const Machine& machine) {
  const auto factors = factors_of(spec, machine);
  if (is_collective(spec.kind)) {
    CORE_ASSERT(spec.group >= 0);
    const auto links = links_of(groups[static_cast<std::size_t>(spec.group)], machine.topology);
    const auto choice = collective_time(collective_of(spec), links, machine.curves);
    return {core::to_sim_time(factors.priced(choice.cost)), choice.cost.origin, choice.algorithm};
  }
  const auto cost = kernel_time(spec, machine.curves);
  return {core::to_sim_time(factors.priced(cost)), cost.origin, {}};
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
    if (op.overlaps_next) {
      lane.join = std::max(lane.join, lane.beside);
      lane.beside = end;
    } else {
      lane.join = lane.last = end;
    }
  }
};

// Chains whose kernels and all-to-alls of experts slow each other: the same queues and lanes run by events, with the engine's
// arithmetic (simulator/engine/engine.cpp): work in picoseconds times the full rate, ends rounded up at each change of rate.
class ContendedChains {
 public:
  void clear() {
    ops_.clear();
    for (auto& queue : queues_) queue.clear();
    lanes_ = {};
  }

  // The next operation of a lane (0 or 1).
  void add(std::size_t lane_index, const core::ChainOp& op, SimTime duration) {
    auto& lane = lanes_[lane_index];
    const auto mark = op.spec >> mark_shift;
    const auto id = static_cast<std::int32_t>(ops_.size());
    auto& added = ops_.emplace_back();
    added.work = duration * full_rate;
    added.after = lane.joins;
    added.waits_for_host = (op.spec & chain_host_mark) != 0;
    if (mark != 0) added.after.add(lane.last);
    queues_[mark].push_back(id);
    if (mark == 0) {
      lane.joins = {};
      lane.joins.add(lane.beside);
      lane.beside = none;
      lane.last = id;
    } else if (op.overlaps_next) {
      lane.joins.add(lane.beside);
      lane.beside = id;
    } else {
      lane.joins = {};
      lane.joins.add(id);
      lane.last = id;
    }
  }

  SimTime time(const Slowdown& experts) {
    const auto rates = overlap_rates(experts, 1.0);
    SimTime now = 0;
    std::array<std::size_t, 4> head{};
    std::array<std::int32_t, 4> running;
    for (;;) {
      for (std::size_t q = 0; q < queues_.size(); ++q) running[q] = runs(q, head[q]);
      const bool contended = running[0] != none && running[expert_mark] != none && !op(running[0]).waits_for_host;
      SimTime next = never;
      for (std::size_t q = 0; q < queues_.size(); ++q) {
        if (running[q] == none) continue;
        auto& o = op(running[q]);
        const auto rate = !contended || (q != 0 && q != expert_mark) ? full_rate
                          : q == 0                                   ? rates.compute
                                                                     : rates.communication;
        if (o.rate != rate) {
          o.work = std::max<std::int64_t>(0, o.work - (now - o.since) * o.rate);
          o.since = now;
          o.rate = rate;
          o.end = now + (o.work + rate - 1) / rate;
        }
        next = std::min(next, o.end);
      }
      if (next == never) break;
      now = next;
      for (std::size_t q = 0; q < queues_.size(); ++q) {
        if (running[q] == none || op(running[q]).end != now) continue;
        op(running[q]).done = true;
        ++head[q];
      }
    }
    return now;
  }

 private:
  static constexpr std::int64_t full_rate = OverlapRates::full_rate;
  static constexpr SimTime never = std::numeric_limits<SimTime>::max();
  static constexpr std::int32_t none = -1;
  // Operations that another waits for.
  class Before {
   public:
    void add(std::int32_t id) {
      if (id == none) return;
      CORE_ASSERT(count_ < ids_.size());
      ids_[count_++] = id;
    }
    const std::int32_t* begin() const { return ids_.data(); }
    const std::int32_t* end() const { return ids_.data() + count_; }

   private:
    std::array<std::int32_t, 6> ids_{};
    std::size_t count_ = 0;
  };
  struct Op {
    std::int64_t work = 0;
    Before after;
    bool waits_for_host = false, done = false;
    std::int64_t rate = 0;
    SimTime since = 0, end = 0;
  };
  struct Lane {
    std::int32_t last = none, beside = none;
    Before joins;
  };
  Op& op(std::int32_t id) { return ops_[static_cast<std::size_t>(id)]; }
  // The head of a queue where all that it waits for is done.
  std::int32_t runs(std::size_t queue, std::size_t head) {
    if (head == queues_[queue].size()) return none;
    const auto id = queues_[queue][head];
    for (const auto before : op(id).after) {
      if (!op(before).done) return none;
    }
    return id;
  }

  std::vector<Op> ops_;
  std::array<std::vector<std::int32_t>, 4> queues_;  // by mark
  std::array<Lane, 2> lanes_;
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

SimTime chain_time(const std::vector<core::ChainOp>& chain, const std::vector<SimTime>& durations, const Slowdown& experts) {
  // A collective that runs beside the next kernel lets that kernel start before all-to-alls ahead of it, too.
  const auto overlaps = [](const core::ChainOp& op) { return op.overlaps_next; };
  const auto of_experts = [](const core::ChainOp& op) { return op.spec >> mark_shift == expert_mark; };
  if (!experts.none() && std::any_of(chain.begin(), chain.end(), overlaps) &&
      std::any_of(chain.begin(), chain.end(), of_experts)) {
    thread_local ContendedChains chains;
    chains.clear();
    for (const auto& op : chain) chains.add(0, op, durations[op.spec & spec_mask]);
    return chains.time(experts);
  }
  ChainQueues queues;
  ChainLane lane;
  for (const auto& op : chain) queues.run(lane, op, durations[op.spec & spec_mask]);
  return std::max(queues.compute, lane.end());
}

SimTime pair_time(const std::vector<core::ChainOp>& forward,
                  const std::vector<core::ChainOp>& backward,
                  const std::vector<SimTime>& forward_durations,
                  const std::vector<SimTime>& backward_durations,
                  const Slowdown& experts) {
  const auto in_order = [&](const auto& visit) {
    for (const auto& next : core::interleave(
             backward.size(), [&](std::size_t i) { return hands_over(backward[i]); }, forward.size(),
             [&](std::size_t i) { return hands_over(forward[i]); })) {
      const auto& op = next.is_forward ? forward[next.index] : backward[next.index];
      visit(next.is_forward, op, (next.is_forward ? forward_durations : backward_durations)[op.spec & spec_mask]);
    }
  };
  if (!experts.none()) {
    thread_local ContendedChains chains;
    chains.clear();
    in_order([&](bool is_forward, const core::ChainOp& op, SimTime duration) { chains.add(is_forward ? 0 : 1, op, duration); });
    return chains.time(experts);
  }
  ChainQueues queues;
  ChainLane forward_lane, backward_lane;
  in_order([&](bool is_forward, const core::ChainOp& op, SimTime duration) {
    queues.run(is_forward ? forward_lane : backward_lane, op, duration);
  });
  return std::max({queues.compute, forward_lane.end(), backward_lane.end()});
}

namespace {

// Where kernels are not slowed, by how much they are lengthened to see which of them count.
double lengthening(const Slowdown& slowdown) { return slowdown.compute > 0.0 ? slowdown.compute : 0.1; }

}  // namespace

SimTime host_end(const core::Framework& framework, SimTime kernels, SimTime launches) {
  return framework.launches_wait ? kernels + launches : std::max(kernels, launches);
}

SimTime slowed_kernel(SimTime alone, const Slowdown& slowdown) {
  return static_cast<SimTime>(std::llround(static_cast<double>(alone) * (1.0 + lengthening(slowdown))));
}

double kernel_share(SimTime time, SimTime slowed, const Slowdown& slowdown) {
  if (time <= 0) return 1.0;
  return std::clamp(static_cast<double>(slowed - time) / (lengthening(slowdown) * static_cast<double>(time)), 0.0, 1.0);
}

Slowdown slowdown_of(const Curves& curves) {
  return {curves.at("overlap.compute_slowdown"), curves.at("overlap.comm_slowdown")};
}

Slowdown experts_slowdown(core::Dispatch dispatch, const Curves& curves) {
  if (dispatch == core::Dispatch::nccl) return slowdown_of(curves);
  const auto interference = interference_of(Transport::one_sided, curves);
  return {interference.compute_slowdown, interference.comm_slowdown};
}

Contention contention_of(const core::StepGraph& graph, const Curves& curves) {
  const auto one_sided = [](const core::OpSpec& spec) { return spec.one_sided; };
  const bool any = std::any_of(graph.specs.begin(), graph.specs.end(), one_sided);
  return {slowdown_of(curves), experts_slowdown(any ? core::Dispatch::one_sided : core::Dispatch::nccl, curves)};
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

// Chains with collectives and waits marked, as chain_time wants them.
std::vector<core::ChainOp> marked(const std::vector<core::ChainOp>& chain, const core::StepGraph& graph) {
  auto out = chain;
  for (auto& op : out) {
    const auto group = graph.specs[op.spec].group;
    if (group >= 0) op.spec |= chain_mark(core::stream_of(graph.groups[static_cast<std::size_t>(group)]));
    else if (is_wait(graph.specs[op.spec])) op.spec |= chain_host_mark;
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

SimTime cell_time(const core::StepGraph& graph, const core::OpSpec& cell, const std::vector<SimTime>& durations,
                  const Slowdown& experts) {
  const auto chains = core::StepGraph::chains_of(cell);
  const auto first = marked(graph.chains[chains.front()], graph);
  if (chains.size() == 1) return chain_time(first, durations, experts);
  return pair_time(first, marked(graph.chains[chains.back()], graph), durations, durations, experts);
}

std::vector<Price> prices_of(const core::StepGraph& graph, const Machine& machine, const core::Framework& framework) {
  std::vector<Price> prices(graph.specs.size());
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const auto kind = graph.specs[i].kind;
    if (kind != OpKind::cell && kind != OpKind::host) prices[i] = price_of(graph.specs[i], graph.groups, machine);
  }
  auto durations = durations_of(prices);
  const auto [data, experts] = contention_of(graph, machine.curves);
  // What copies outlast the chains beside them; then waits for the host, whose chains may end with such a wait.
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const auto& spec = graph.specs[i];
    if (!is_copy(spec.kind) || !is_wait(spec)) continue;
    const auto beside = chain_time(marked(graph.chains[static_cast<std::size_t>(spec.n - 1)], graph), durations, experts);
    prices[i].duration = durations[i] = std::max<SimTime>(0, durations[i] - beside);
    prices[i].kernel_share = 0.0;
  }
  const auto host = core::to_sim_time(framework.host_per_launch);
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const auto& spec = graph.specs[i];
    if (spec.kind != OpKind::host) continue;
    const auto gpu = chain_time(marked(graph.chains[static_cast<std::size_t>(spec.n)], graph), durations, experts);
    prices[i].duration = durations[i] = host_end(framework, gpu, spec.m * host) - gpu;
    prices[i].kernel_share = 0.0;
  }
  auto slowed = durations;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    if (graph.specs[i].group < 0 && !is_wait(graph.specs[i])) slowed[i] = slowed_kernel(durations[i], data);
  }
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const auto& spec = graph.specs[i];
    if (spec.kind != OpKind::cell) continue;
    std::vector<core::ChainOp> all;
    for (const auto chain : core::StepGraph::chains_of(spec)) {
      all.insert(all.end(), graph.chains[chain].begin(), graph.chains[chain].end());
    }
    const auto time = cell_time(graph, spec, durations, experts);
    prices[i] = {time, chain_origin(all, prices), {}, kernel_share(time, cell_time(graph, spec, slowed, experts), data)};
  }
  return prices;
}

}  // namespace simulator

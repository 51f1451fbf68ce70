#include "simulator/pricer.h"

#include <algorithm>

#include "core/error.h"
#include "core/graph/launches.h"
#include "simulator/pricer/parts.h"

namespace simulator {

using core::Part;
using core::Recompute;
using core::SimTime;

// Forward and backward of each two stages that can meet on a rank, operation by operation.
void Pricer::price_pairs(const core::ParallelPlan& plan, PricedBodies& bodies, bool alone, CellTimes& out) {
  const auto experts = experts_slowdown(plan.dispatch, bench_.curves());
  if (!bodies.chains) {
    bodies.chains = std::make_unique<PairChains>();
    with_chains_.push_back(&bodies);
    const auto model_bodies = setting_.bodies_of(plan);
    const auto& framework = setting_.framework_of(plan);
    const auto host = core::to_sim_time(framework.host(plan.graphs));
    const auto add = [&](const core::Body& body) {
      auto& parts = bodies.chains->bodies.emplace_back();
      for (const auto part : all_parts) {
        auto& chain = parts[index_of(part)] = price_chain(body, part, plan);
        // The waits for a copy and for the host's launches, as core/graph/graph_writer.cpp has them.
        const auto launches = core::launches_of(framework.launches, core::ops_of(body, part), plan.graphs) * host;
        const auto wait_until = [&](SimTime end) {
          const auto wait = end - chain_time(chain.ops, chain.durations, experts);
          chain.ops.push_back({static_cast<std::uint32_t>(chain.durations.size()) | chain_host_mark, false, false});
          chain.durations.push_back(std::max<SimTime>(0, wait));
          chain.slowed.push_back(chain.durations.back());
        };
        if (const auto copy = offload_time(body, part); copy > 0) wait_until(copy);
        if (launches > 0)
          wait_until(host_end(framework, chain_time(chain.ops, chain.durations, experts), launches));
      }
    };
    const auto add_modes = [&](const core::Body& body) {
      for (const auto mode : {Recompute::none, Recompute::selective, Recompute::full, Recompute::modules}) {
        add(core::layer_body(body, mode, plan));
      }
    };
    add(model_bodies.embedding);
    add(model_bodies.output);
    for (const auto& kind : model_bodies.kinds) add_modes(kind);
    for (const auto& kind : model_bodies.high_kinds) add_modes(kind);
    for (const auto& module : model_bodies.mtp) add_modes(module);
  }
  const auto chain_of = [&](std::size_t s, Part part) {
    PricedChain all;
    expand(stages_[s]);
    if (part != Part::forward) std::reverse(expanded_.begin(), expanded_.end());
    for (const auto* body : expanded_) {
      const auto& chain = bodies.chains->bodies[body->chain][index_of(part)];
      const auto base = static_cast<std::uint32_t>(all.durations.size());
      for (auto op : chain.ops) {
        op.spec += base;
        all.ops.push_back(op);
      }
      all.durations.insert(all.durations.end(), chain.durations.begin(), chain.durations.end());
      all.slowed.insert(all.slowed.end(), chain.slowed.begin(), chain.slowed.end());
    }
    return all;
  };
  const auto& schedule = schedule_of(plan);
  const auto backward = schedule.pairs_input_gradients ? Part::input_gradient : Part::backward;
  const auto likes = first_like_.size();
  out.pairs_have_input_gradient = schedule.pairs_input_gradients;
  out.pairs.assign(likes * likes, {});
  std::vector<PricedChain> forwards(likes), backwards(likes);
  for (std::size_t i = 0; i < likes; ++i) {
    forwards[i] = chain_of(first_like_[i], Part::forward), backwards[i] = chain_of(first_like_[i], backward);
  }
  std::vector<bool> known(likes * likes, false);
  const auto price_pair = [&](std::size_t i, std::size_t j) {
    if (known[i * likes + j]) return;
    known[i * likes + j] = true;
    PartTime both;
    both.time = pair_time(forwards[i].ops, backwards[j].ops, forwards[i].durations, backwards[j].durations, experts);
    both.slowed = alone ? both.time : pair_time(forwards[i].ops, backwards[j].ops, forwards[i].slowed, backwards[j].slowed, experts);
    out.pairs[i * likes + j] = piece_of(both);
  };
  for (std::int64_t r = 0; r < plan.pp; ++r) {
    const auto mine = core::model_stages_of_rank(schedule.placement, plan.pp, plan.stages(), r);
    for (const auto f : mine) {
      for (const auto b : mine) price_pair(like_[static_cast<std::size_t>(f)], like_[static_cast<std::size_t>(b)]);
    }
  }
}

}  // namespace simulator

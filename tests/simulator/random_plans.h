#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/schedule.h"
#include "simulator/pricer.h"
#include "simulator/request.h"

// Legal plans by a seeded generator, for laws that hold on all of them. `rng() % n` rather than the
// library's distributions, whose numbers differ between systems.
namespace random_plans {

using Rng = std::mt19937_64;

template <class Value>
Value pick(Rng& rng, const std::vector<Value>& values) {
  return values[rng() % values.size()];
}

// A machine: `node` changes the GPU's usual node, `oversubscription` thins the network above it.
struct Machine {
  std::string gpu = "h100-sxm";
  std::int64_t gpus = 8;
  std::string node{};
  double oversubscription = 1.0;
};

inline simulator::Setting setting_of(const std::string& model,
                                     const Machine& machine,
                                     std::int64_t seq,
                                     const std::string& framework = "megatron",
                                     const std::string& attention = "") {
  simulator::Request request;
  request.model = model;
  request.gpu = machine.gpu;
  request.gpus = machine.gpus;
  request.seq = seq;
  request.framework = framework;
  request.attention = attention;
  auto setting = simulator::make_setting(request);
  if (!machine.node.empty()) {
    const auto gpu = setting.cluster.node.gpu;
    setting.cluster.node = core::load_node(machine.node);
    setting.cluster.node.gpu = gpu;
  }
  setting.cluster.oversubscription = machine.oversubscription;
  return setting;
}

// Bounds of what is drawn; every axis of a plan varies unless it is held here.
struct Limits {
  std::int64_t most_tp = 16, most_pp = 16, most_vpp = 4, most_micro_batch = 4,
               most_micro_batches = 32;
  std::optional<std::int64_t> tp, pp, micro_batches;
  std::optional<int> zero;
  std::optional<core::Layout> layout;
  bool offload = false;  // something is kept in host memory
  bool any_schedule = false;  // every schedule, and the settings that say how communication and loss run
};

inline std::int64_t draw_divisor(Rng& rng, std::int64_t n, std::int64_t most) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= std::min(n, most); ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return pick(rng, divisors);
}

// Layers of each virtual stage by cutting the layers at random places: stages without layers occur.
inline std::vector<std::int64_t> draw_layers(Rng& rng, std::int64_t layers, std::int64_t stages) {
  std::vector<std::int64_t> cuts{0, layers};
  for (std::int64_t i = 1; i < stages; ++i)
    cuts.push_back(static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(layers + 1)));
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) out.push_back(cuts[i + 1] - cuts[i]);
  return out;
}

// Groups of shards, each a divisor of the one after it.
inline void draw_groups(Rng& rng, core::ParallelPlan& plan) {
  auto within = plan.replicas();
  const auto draw = [&](std::optional<std::int64_t>& ranks) {
    const auto n = draw_divisor(rng, within, within);
    if (n != plan.replicas()) ranks = n;
    within = n;
  };
  draw(plan.shard.optimizer);
  if (plan.zero >= 2) draw(plan.shard.gradients);
  if (plan.zero >= 3) draw(plan.shard.parameters);
}

inline void draw_experts(Rng& rng, const core::ModelSpec& model, core::ParallelPlan& plan) {
  for (const auto& layer : model.kinds) {
    for (const auto& block : layer.blocks) {
      if (block.kind != "moe") continue;
      plan.sp = plan.sp || plan.tp > 1;
      plan.etp = rng() % 2 == 0 ? 1 : plan.tp;
      plan.ep = draw_divisor(rng, plan.ranks_of_stage() / plan.etp, block.shape.at("experts"));
      if (plan.zero < 3 && rng() % 4 == 0) plan.expert_zero = static_cast<int>(rng() % 3);
      return;
    }
  }
}

// A plan, legal or not.
inline core::ParallelPlan draw(Rng& rng,
                               const core::ModelSpec& model,
                               std::int64_t gpus,
                               const Limits& limits) {
  core::ParallelPlan plan;
  plan.tp = limits.tp ? *limits.tp : draw_divisor(rng, gpus, limits.most_tp);
  plan.pp = limits.pp ? *limits.pp : draw_divisor(rng, gpus / plan.tp, limits.most_pp);
  if (rng() % 3 == 0) {
    plan.cp = draw_divisor(rng, std::max<std::int64_t>(1, gpus / (plan.tp * plan.pp)), 8);
    plan.cp_kind = pick<core::ContextParallel>(rng,
                                               {core::ContextParallel::ring,
                                                core::ContextParallel::all_gather,
                                                core::ContextParallel::all_gather,
                                                core::ContextParallel::ulysses});
    plan.cp_balanced = rng() % 4 != 0;
  }
  plan.dp = gpus / (plan.tp * plan.cp * plan.pp);
  plan.sp = rng() % 2 == 0;
  plan.zero = limits.zero ? *limits.zero : static_cast<int>(rng() % 4);
  if (plan.dp > 0 && plan.zero > 0 && rng() % 3 == 0) draw_groups(rng, plan);
  if (plan.dp > 0) draw_experts(rng, model, plan);
  plan.post_validation = rng() % 6 == 0;
  plan.schedule = pick<std::string>(rng, {"1f1b", "1f1b", "gpipe", "interleaved", "interleaved"});
  if (plan.schedule == "interleaved") {
    plan.vpp =
        2 + static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(limits.most_vpp - 1));
  }
  if (limits.any_schedule) {
    const auto* schedule = core::schedules::all()[rng() % core::schedules::all().size()];
    plan.schedule = std::string(schedule->name);
    plan.vpp = schedule->stages_a_rank ? *schedule->stages_a_rank
                                       : 2 + static_cast<std::int64_t>(rng() % 3);
    plan.overlap_tensor = rng() % 3 == 0;
    plan.overlap_experts = rng() % 3 == 0;
    plan.loss = static_cast<core::Loss>(rng() % 3);
    plan.graphs = rng() % 3 == 0 ? core::CudaGraphs::layers : core::CudaGraphs::none;
  }
  plan.micro_batch =
      1 + static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(limits.most_micro_batch));
  auto m =
      1 + static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(limits.most_micro_batches));
  if (limits.micro_batches) m = *limits.micro_batches;
  if (plan.schedule == "interleaved") m = (m + plan.pp - 1) / plan.pp * plan.pp;
  plan.global_batch = plan.micro_batch * plan.dp * m;
  plan.recompute = pick<core::Recompute>(rng,
                                         {core::Recompute::none,
                                          core::Recompute::none,
                                          core::Recompute::selective,
                                          core::Recompute::modules,
                                          core::Recompute::full});
  if (plan.recompute == core::Recompute::modules) {
    plan.recompute_modules = 2 + static_cast<core::Modules>(rng() % 62);
  }
  if (plan.recompute == core::Recompute::full && rng() % 2 == 0) {
    plan.recompute_layers = 1 + static_cast<std::int64_t>(rng() % 3);
  }
  plan.layout =
      limits.layout
          ? *limits.layout
          : pick<core::Layout>(rng, {core::Layout::even, core::Layout::slots, core::Layout::given});
  if (plan.layout == core::Layout::given)
    plan.layers = draw_layers(rng, model.layers(), plan.stages());
  const auto* drawn = core::find_schedule(plan.schedule);
  plan.reduce_runs = plan.zero == 2 && !drawn->splits_backward && !drawn->pairs && rng() % 2 == 0;
  plan.overlap_gradients = rng() % 4 != 0;
  plan.overlap_parameters = rng() % 4 != 0;
  if (limits.offload) {
    const auto kinds = 1 + rng() % 7;
    plan.offload = {(kinds & 1) != 0, (kinds & 2) != 0 && plan.zero == 3, (kinds & 4) != 0};
    if (!plan.offload.any()) plan.offload.activations = true;
  }
  if (limits.any_schedule && plan.zero > 0) plan.collectives = static_cast<core::Collectives>(rng() % core::collectives_kinds);
  return plan;
}

// The next legal plan.
inline core::ParallelPlan draw_legal(Rng& rng,
                                     const simulator::Setting& setting,
                                     const Limits& limits = {}) {
  while (true) {
    auto plan = draw(rng, setting.model, setting.cluster.gpus, limits);
    // Where the host's bandwidth is not known its optimizer has no time.
    if (!setting.cluster.gpu.host_memory_bandwidth) plan.offload.optimizer = false;
    if (!core::why_not(setting.model, plan, setting.cluster.gpus, setting.seq)) return plan;
  }
}

inline core::ScheduleTable table_of(const core::ParallelPlan& plan) {
  return core::find_schedule(plan.schedule)->table(plan.pp, plan.vpp, plan.micro_batches());
}

}  // namespace random_plans

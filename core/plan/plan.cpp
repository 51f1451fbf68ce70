#include "core/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/plan/dimension.h"
#include "core/plan/schedule.h"

namespace core {

namespace {

// A group that was given as "node": the ranks of a replica group that share a node.
void resolve(std::optional<std::int64_t>& ranks, bool is_node, std::int64_t stride, std::int64_t replicas,
             std::int64_t gpus_per_node) {
  if (!is_node) return;
  ranks = std::max<std::int64_t>(1, std::min(replicas, gpus_per_node / stride));
}

// Groups as large as all replicas are all of them.
void normalise(ShardGroups& groups, std::int64_t replicas) {
  for (auto* ranks : {&groups.parameters, &groups.gradients, &groups.optimizer}) {
    if (*ranks == replicas) ranks->reset();
  }
}

}  // namespace

ParallelPlan complete_plan(const PlanText& text,
                           const ModelSpec& model,
                           std::int64_t gpus,
                           std::int64_t global_batch,
                           std::int64_t gpus_per_node) {
  ParallelPlan plan = text.plan;
  const auto others = plan.tp * plan.cp * plan.pp;
  if (!text.has_dp && others <= gpus) plan.dp = gpus / others;
  if (!text.has_global_batch) plan.global_batch = global_batch;
  if (!text.has_zero) plan.zero = plan.replicas() > 1 ? 1 : 0;
  if (!text.has_layout) {
    plan.layout = model.layers() % plan.stages() == 0 ? Layout::even : Layout::slots;
  }
  complete_groups(text, gpus_per_node, plan);
  return plan;
}

void complete_groups(const PlanText& text, std::int64_t gpus_per_node, ParallelPlan& plan) {
  resolve(plan.shard.parameters, text.node.parameters, plan.tp, plan.replicas(), gpus_per_node);
  resolve(plan.shard.gradients, text.node.gradients, plan.tp, plan.replicas(), gpus_per_node);
  resolve(plan.shard.optimizer, text.node.optimizer, plan.tp, plan.replicas(), gpus_per_node);
  normalise(plan.shard, plan.replicas());
  if (plan.ranks_of_stage() % (plan.ep * plan.etp) == 0) {
    const auto stride = plan.ep * plan.etp, replicas = plan.expert_replicas();
    resolve(plan.expert_shard.parameters, text.expert_node.parameters, stride, replicas, gpus_per_node);
    resolve(plan.expert_shard.gradients, text.expert_node.gradients, stride, replicas, gpus_per_node);
    resolve(plan.expert_shard.optimizer, text.expert_node.optimizer, stride, replicas, gpus_per_node);
    normalise(plan.expert_shard, replicas);
  }
}

std::vector<std::int64_t> layers_of_stages(const ParallelPlan& plan, std::int64_t layers) {
  const auto n = plan.stages();
  if (plan.layout == Layout::given) return plan.layers;
  if (plan.layout == Layout::even) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(n), layers / n);
  }
  const auto slots = layers + 2;
  std::vector<std::int64_t> out(static_cast<std::size_t>(n), slots / n);
  // What is left over goes to the middle from the back: early stages hold the most activations, and the
  // last has the output layer.
  auto left = slots % n;
  for (auto s = n - 2; left > 0; --s, --left) out[static_cast<std::size_t>(s)] += 1;
  out.front() -= 1;
  out.back() -= 1;
  return out;
}

std::optional<std::string> why_not(const ModelSpec& model,
                                   const ParallelPlan& plan,
                                   std::int64_t gpus,
                                   std::int64_t seq) {
  if (plan.gpus() != gpus) {
    const auto cp = plan.cp > 1 ? fmt::format(" x cp={}", plan.cp) : std::string();
    return fmt::format("tp={}{} x pp={} x dp={} is {} GPUs, not the {} asked for",
                       plan.tp, cp, plan.pp, plan.dp, plan.gpus(), gpus);
  }
  for (const auto* dimension : dimensions::all()) {
    if (auto reason = dimension->why_not(model, plan, seq)) return reason;
  }
  if (plan.sp && plan.tp > 1 && seq % plan.tp != 0) {
    return fmt::format("sequence {} does not divide by tp={} (sequence parallel)", seq, plan.tp);
  }
  const auto* schedule = find_schedule(plan.schedule);
  CORE_ASSERT(schedule != nullptr);
  return schedule->why_not(plan.pp, plan.vpp, plan.micro_batches());
}

namespace {

// Whether states are gathered or scattered over ranks of which a node of so many GPUs has several, and not all. `stride`: from
// one replica to the next. Groups as core/graph/state_traffic.h.
bool crosses_nodes(int zero, const ShardGroups& groups, std::int64_t stride, std::int64_t replicas, std::int64_t gpus_per_node) {
  const std::int64_t o = zero >= 1 ? groups.optimizer.value_or(replicas) : 1;
  const std::int64_t g = zero >= 2 ? groups.gradients.value_or(replicas) : 1;
  const std::int64_t p = zero >= 3 ? groups.parameters.value_or(replicas) : 1;
  const auto crosses = [&](std::int64_t first, std::int64_t ranks) {
    return ranks > 1 && first < gpus_per_node && first * ranks > gpus_per_node;
  };
  return crosses(stride, p) || crosses(stride, g) || crosses(stride * g, o / g) || crosses(stride * p, o / p);
}

std::optional<std::string> note_on_collectives(const ParallelPlan& plan, std::optional<std::int64_t> gpus_per_node) {
  if (plan.collectives == Collectives::flat) return std::nullopt;
  const auto experts = plan.zero_of_experts();
  if (plan.zero == 0 && experts == 0) {
    return fmt::format("collectives={} does nothing at zero=0: no states are gathered or scattered", name_of(plan.collectives));
  }
  if (!gpus_per_node) return std::nullopt;
  // A plan with ep=1 does not say whether the model has experts.
  const bool of_experts = plan.ep * plan.etp > 1 || plan.expert_zero;
  const auto& expert_groups = plan.expert_zero ? plan.expert_shard : ShardGroups{};
  if (crosses_nodes(plan.zero, plan.shard, plan.tp, plan.replicas(), *gpus_per_node)) return std::nullopt;
  if (of_experts && crosses_nodes(experts, expert_groups, plan.ep * plan.etp, plan.expert_replicas(), *gpus_per_node)) {
    return std::nullopt;
  }
  return fmt::format("collectives={} does nothing: no group of {} states has several ranks in each of several nodes of {} GPUs",
                     name_of(plan.collectives), of_experts ? "shared" : "dense", *gpus_per_node);
}

}  // namespace

std::vector<std::string> notes_on(const ParallelPlan& plan, std::optional<std::int64_t> gpus_per_node) {
  std::vector<std::string> notes;
  if (plan.sp && plan.tp == 1) notes.emplace_back("sp does nothing at tp=1");
  if (plan.zero > 0 && plan.replicas() == 1 && plan.expert_replicas() == 1 && !plan.offload.any()) {
    notes.push_back(fmt::format("zero={} does nothing at dp=1: there is nobody to share states with", plan.zero));
  }
  if (plan.recompute_layers > 0 && plan.recompute != Recompute::full) {
    notes.emplace_back("a number of layers to recompute does nothing without recompute=full");
  }
  if (auto note = note_on_collectives(plan, gpus_per_node)) notes.push_back(std::move(*note));
  return notes;
}

}  // namespace core

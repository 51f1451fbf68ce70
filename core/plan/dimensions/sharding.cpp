// Sharding of parameters, gradients and optimizer states, each over its own group of the replicas: all of them (ZeRO, arXiv
// 1910.02054), a node (HSDP; ZeRO++'s secondary partition, arXiv 2306.10209), any number (PaRO, arXiv 2310.06003). Groups grow from
// parameters to optimizer states, each a multiple of the one before; copies of a group's shards are kept equal by reductions
// and gathers between groups; collectives= says whether those that pass nodes do so in levels.
#include <fmt/format.h>

#include "core/plan/dimension.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace core::dimensions {

namespace {

std::optional<std::string> why_not_groups(std::string_view key, int zero, const ShardGroups& groups, std::int64_t replicas) {
  const std::int64_t p = zero >= 3 ? groups.parameters.value_or(replicas) : 1;
  const std::int64_t g = zero >= 2 ? groups.gradients.value_or(replicas) : 1;
  const std::int64_t o = zero >= 1 ? groups.optimizer.value_or(replicas) : 1;
  struct Group {
    char letter;
    std::int64_t ranks, within;
    std::string_view what;
  };
  for (const auto& group : {Group{'p', p, g, "the gradients' group"}, Group{'g', g, o, "the optimizer states' group"},
                            Group{'o', o, replicas, "the replicas"}}) {
    if (group.within % group.ranks != 0) {
      return fmt::format("{}={}:{} does not divide {} of {}", key, group.letter, group.ranks, group.what, group.within);
    }
  }
  return std::nullopt;
}

// Gradients of a run stay whole on the rank until it ends.
std::optional<std::string> why_not_runs(const ParallelPlan& plan) {
  if (!plan.reduce_runs) return std::nullopt;
  if (plan.zero != 2) return fmt::format("reduce=runs with zero={}: expected zero=2, sharded gradients of whole parameters", plan.zero);
  if (plan.offload.optimizer) return "reduce=runs with offload=optimizer: gradients would go to the host after each run; expected reduce=each";
  const auto* schedule = find_schedule(plan.schedule);
  if (schedule != nullptr && (schedule->splits_backward || schedule->pairs)) {
    return fmt::format("reduce=runs with schedule {}: expected a schedule of whole backwards, each by itself", plan.schedule);
  }
  return std::nullopt;
}

std::optional<std::string> why_not(const ModelSpec&, const ParallelPlan& plan, std::int64_t) {
  if (auto reason = why_not_groups("shard", plan.zero, plan.shard, plan.replicas())) return reason;
  if (plan.expert_zero) {
    if (auto reason = why_not_groups("expert-shard", *plan.expert_zero, plan.expert_shard, plan.expert_replicas())) return reason;
    if ((*plan.expert_zero == 3) != (plan.zero == 3)) {
      return fmt::format("expert-zero={} with zero={}: parameters are gathered for all of a layer or for none of it",
                         *plan.expert_zero, plan.zero);
    }
  }
  if (auto reason = why_not_runs(plan)) return reason;
  if (plan.offload.weights && plan.zero < 3) return "offload=weights needs sharded parameters (zero=3)";
  const auto* schedule = find_schedule(plan.schedule);
  if ((plan.offload.optimizer || plan.offload.weights) && schedule != nullptr && schedule->placement == Placement::both_ways) {
    return fmt::format("offload of optimizer or weights with schedule {}: two pipeline ranks reduce each stage's gradients "
                       "after they would be on the host; expected offload=activations or another schedule", plan.schedule);
  }
  return std::nullopt;
}

}  // namespace

extern const Dimension sharding;
const Dimension sharding = {"zero", "sharding of states, with shard, expert-shard and offload", "states", why_not};

}  // namespace core::dimensions

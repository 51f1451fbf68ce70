// Expert parallel: the ranks of a stage share out the routed experts (GShard, arXiv 2006.16668); tokens travel to them and
// back by all-to-all. Expert tensor parallel divides each expert's ffn axis; what is left of the stage's ranks holds copies:
// expert data parallel, a group of its own for reduction and sharding (MoE parallel folding, arXiv 2504.14960).
#include <fmt/format.h>

#include <algorithm>

#include "core/plan/dimension.h"
#include "core/plan/plan.h"

namespace core::dimensions {

namespace {

std::optional<std::string> why_not_block(const Block& block, const ParallelPlan& plan) {
  if (block.kind != "moe") return std::nullopt;
  const auto experts = block.shape.at("experts"), ffn = block.shape.at("ffn");
  if (experts % plan.ep != 0) return fmt::format("{} experts do not divide by ep={}", experts, plan.ep);
  if (ffn % plan.etp != 0) return fmt::format("experts' ffn {} does not divide by etp={}", ffn, plan.etp);
  return std::nullopt;
}

std::optional<std::string> why_not(const ModelSpec& model, const ParallelPlan& plan, std::int64_t) {
  bool has_experts = false;
  for (const auto& layer : model.kinds) {
    for (const auto& block : layer.blocks) {
      has_experts = has_experts || block.kind == "moe";
      if (auto reason = why_not_block(block, plan)) return reason;
    }
  }
  if (!has_experts) {
    if (plan.ep > 1) return fmt::format("ep={}: the model has no experts", plan.ep);
    if (plan.etp > 1) return fmt::format("etp={}: the model has no experts", plan.etp);
    return std::nullopt;
  }
  if (plan.ranks_of_stage() % (plan.ep * plan.etp) != 0) {
    return fmt::format("the {} ranks of a stage (tp={} x cp={} x dp={}) do not divide by ep={} x etp={}",
                       plan.ranks_of_stage(), plan.tp, plan.cp, plan.dp, plan.ep, plan.etp);
  }
  if (plan.tp > 1 && !plan.sp) return fmt::format("experts under tp={} need sp: each rank routes its own tokens", plan.tp);
  if (plan.etp > 1 && plan.tp % plan.etp != 0) {
    return fmt::format("etp={} does not divide tp={}: ranks of an expert tensor group share a tensor group", plan.etp, plan.tp);
  }
  return std::nullopt;
}

}  // namespace

extern const Dimension expert;
const Dimension expert = {"ep", "expert parallel, with etp", "experts", why_not};

}  // namespace core::dimensions

// Context parallel: each rank has a part of every sequence, and sees the others' keys and values by one of three ways (see
// core/graph/core_attention.h). Balanced for causal attention, the sequence is cut into 2 cp parts and a rank has an early and
// a late one (Llama 3, arXiv 2407.21783, section 3.3.2).
#include <fmt/format.h>

#include "core/plan/dimension.h"
#include "core/plan/plan.h"

namespace core::dimensions {

namespace {

std::optional<std::string> why_not_ulysses(const Block& block, const ParallelPlan& plan) {
  const auto heads = block.shape.get("heads", 0) / plan.tp, kv = block.shape.get("kv_heads", heads) / plan.tp;
  if (heads == 0) return std::nullopt;
  if (heads % plan.cp != 0) {
    return fmt::format("{} heads a tensor rank do not divide by cp={} (ulysses)", heads, plan.cp);
  }
  if (kv > 0 && kv % plan.cp != 0 && plan.cp % kv != 0) {
    return fmt::format("{} key-value heads a tensor rank do not divide by cp={} (ulysses)", kv, plan.cp);
  }
  return std::nullopt;
}

std::optional<std::string> why_not(const ModelSpec& model, const ParallelPlan& plan, std::int64_t seq) {
  if (plan.cp == 1) return std::nullopt;
  const bool halves = plan.cp_kind != ContextParallel::ulysses && plan.cp_balanced;
  const auto parts = (halves ? 2 : 1) * plan.cp;
  if (seq % parts != 0) {
    return fmt::format("sequence {} does not divide by {}cp={}", seq, halves ? "2 x " : "", plan.cp);
  }
  if (plan.sp && seq / plan.cp % plan.tp != 0) {
    return fmt::format("sequence {} does not divide by cp={} x tp={} (sequence parallel)", seq, plan.cp, plan.tp);
  }
  if (plan.cp_kind != ContextParallel::ulysses) return std::nullopt;
  for (const auto& layer : model.kinds) {
    for (const auto& block : layer.blocks) {
      if (auto reason = why_not_ulysses(block, plan)) return reason;
    }
  }
  return std::nullopt;
}

}  // namespace

extern const Dimension context;
const Dimension context = {"cp", "context parallel", "sequence", why_not};

}  // namespace core::dimensions

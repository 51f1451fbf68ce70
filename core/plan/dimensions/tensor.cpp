// Tensor parallel (Megatron-LM, arXiv 1909.08053): attention heads and the ffn axis are divided column-wise, the
// following projection row-wise; two all-reduces a layer and direction, or, with sequence parallel (arXiv
// 2205.05198), an all-gather and a reduce-scatter each. The vocabulary is padded until it divides.
#include <fmt/format.h>

#include "core/plan/dimension.h"
#include "core/plan/plan.h"

namespace core::dimensions {

namespace {

std::optional<std::string> why_not_block(const Block& block, std::int64_t tp) {
  if (block.kind == "attention") {
    const auto heads = block.shape.at("heads"), kv = block.shape.at("kv_heads");
    if (heads % tp != 0) return fmt::format("{} heads do not divide by tp={}", heads, tp);
    // Fewer key-value heads than ranks are copied to the ranks that share one.
    if (kv % tp != 0 && tp % kv != 0) {
      return fmt::format("{} key-value heads do not divide by tp={}", kv, tp);
    }
  }
  if (block.kind == "mlp" && block.shape.at("ffn") % tp != 0) {
    return fmt::format("ffn {} does not divide by tp={}", block.shape.at("ffn"), tp);
  }
  return std::nullopt;
}

std::optional<std::string> why_not(const ModelSpec& model, const ParallelPlan& plan, std::int64_t) {
  for (const auto& layer : model.kinds) {
    for (const auto& block : layer.blocks) {
      if (auto reason = why_not_block(block, plan.tp)) return reason;
    }
  }
  return std::nullopt;
}

}  // namespace

extern const Dimension tensor;
const Dimension tensor = {"tp", "tensor parallel", "heads, ffn, vocabulary", why_not};

}  // namespace core::dimensions

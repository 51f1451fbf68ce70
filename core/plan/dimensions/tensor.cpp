// Tensor parallel (Megatron-LM, arXiv 1909.08053): attention heads and the ffn axis are divided column-wise, the
// following projection row-wise; two all-reduces a layer and direction, or, with sequence parallel (arXiv
// 2205.05198), an all-gather and a reduce-scatter each. The vocabulary is padded until it divides. What else has to divide,
// each kind of block says itself.
#include "core/model/block_kind.h"
#include "core/plan/dimension.h"
#include "core/plan/plan.h"

namespace core::dimensions {

namespace {

std::optional<std::string> why_not_layer(const Layer& layer, std::int64_t tp) {
  for (const auto& block : layer.blocks) {
    const auto& kind = block_kind(block.kind);
    if (kind.why_not_tensor == nullptr) continue;
    if (auto reason = kind.why_not_tensor(block, tp)) return reason;
  }
  return std::nullopt;
}

std::optional<std::string> why_not(const ModelSpec& model, const ParallelPlan& plan, std::int64_t) {
  for (const auto* layers : {&model.kinds, &model.mtp}) {
    for (const auto& layer : *layers) {
      if (auto reason = why_not_layer(layer, plan.tp)) return reason;
    }
  }
  return std::nullopt;
}

}  // namespace

extern const Dimension tensor;
const Dimension tensor = {"tp", "tensor parallel", "heads, ffn, vocabulary", why_not};

}  // namespace core::dimensions

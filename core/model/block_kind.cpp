#include "core/model/block_kind.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace core {

const BlockKind& block_kind(std::string_view name) {
  const auto all = blocks::all();
  const auto found = std::find_if(all.begin(), all.end(), [&](const BlockKind* k) { return k->name == name; });
  CORE_ASSERT(found != all.end());
  return **found;
}

std::int64_t active_elements(const Block& block, const Tensor& tensor) {
  if (tensor.experts == 0) return tensor.numel();
  return tensor.rows * tensor.columns * block.shape.at("top_k");
}

double weight_flops(const Block& block, const ModelSpec& model) {
  double elements = 0.0;
  for (const auto& tensor : block_kind(block.kind).tensors(block, model)) {
    if (tensor.columns > 1) elements += static_cast<double>(active_elements(block, tensor));
  }
  return 2.0 * elements;
}

std::optional<std::string> why_not_divided(std::int64_t size, std::string_view what, std::int64_t tp) {
  if (size % tp == 0) return std::nullopt;
  return fmt::format("{} {} do not divide by tp={}", size, what, tp);
}

}  // namespace core

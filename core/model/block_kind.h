#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/body.h"
#include "core/model/model.h"

namespace core {

// A kind of block: one file in core/model/blocks with its parameters, its operations over the axes b, s, h
// and tp, and the tensors it saves for backward.
struct BlockKind {
  std::string_view name;
  // Parameter tensors in order.
  std::vector<Tensor> (*tensors)(const Block& block, const ModelSpec& model);
  // Appends forward and backward operations and saved tensors. Backward operations are appended in the
  // order in which they run if this block ran alone; the caller reverses the order of the blocks.
  void (*lower)(const Block& block,
                const ModelSpec& model,
                const BodyContext& context,
                Body& body);
};

namespace blocks {
std::span<const BlockKind* const> all();
}

const BlockKind& block_kind(std::string_view name);  // CORE_ASSERTs that it exists

}  // namespace core

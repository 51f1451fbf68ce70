// RMSNorm or LayerNorm over the hidden axis. Weights are whole on each tensor-parallel rank. Saves its input
// (arXiv 2205.05198, section 4.1: 2 sbh each); its output is saved by the linear layer that reads it.
#include "core/graph/body_writer.h"
#include "core/model/block_kind.h"
#include "core/model/block_tensors.h"

namespace core::blocks {

namespace {

void lower(const Block& block, const ModelSpec&, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const double elements = context.tokens_between_blocks() * static_cast<double>(block.shape.at("dim"));
  const double a = context.recipe->activation_bytes;
  writer.memory_bound("norm", Direction::forward, context.norm_traffic * 2.0 * a * elements, modules::norm);
  writer.memory_bound("norm_backward", Direction::backward, context.norm_traffic * 3.0 * a * elements);
  writer.save("norm input", a * elements);
}

}  // namespace

extern const BlockKind norm;
const BlockKind norm = {"norm", norm_tensors, lower};

}  // namespace core::blocks

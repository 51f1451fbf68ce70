// Token and position embedding. The table is divided over the vocabulary by tensor parallelism; every rank looks up what
// it has and the results are summed (Megatron-LM, arXiv 1909.08053, section 3).
#include <algorithm>

#include "core/graph/body_writer.h"
#include "core/model/block_kind.h"
#include "core/model/block_tensors.h"

namespace core::blocks {

namespace {

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const double h = static_cast<double>(model.hidden), a = context.recipe->activation_bytes;
  const double tokens = context.tokens(), between = context.tokens_between_blocks(), whole = a * tokens * h;
  const double tables = block.shape.get("positions", 0) > 0 ? 2.0 : 1.0;
  writer.memory_bound("embedding", Direction::forward, (tables + 1.0) * whole);
  leave_tensor_region(writer, context, whole);
  if (context.dropout_hidden) {
    writer.memory_bound("embedding_dropout", Direction::forward, (2.0 * a + 1.0) * between * h);
    writer.memory_bound("embedding_dropout_backward", Direction::backward, (2.0 * a + 1.0) * between * h);
    writer.save("embedding dropout mask", between * h);
  }
  if (context.sp) writer.tensor_collective(OpKind::all_gather, "tp_gradient_all_gather", Direction::backward, whole);
  // Each token's row of the accumulated gradient is read and written.
  writer.memory_bound("embedding_backward", Direction::backward,
                      tables * tokens * h * (a + 2.0 * context.recipe->gradient_bytes));
  body.forward_transient = std::max(body.forward_transient, Bytes{whole});
}

// The table is read, not multiplied with; a narrow one is projected to the hidden size.
double flops_per_token(const Block& block, const ModelSpec& model, const Span&) {
  const auto dim = block.shape.at("dim");
  return dim == model.hidden ? 0.0 : 2.0 * static_cast<double>(dim * model.hidden);
}

}  // namespace

extern const BlockKind embedding;
const BlockKind embedding = {"embedding", embedding_tensors, lower, flops_per_token};

}  // namespace core::blocks

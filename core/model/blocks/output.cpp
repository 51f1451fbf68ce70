// Output layer and loss: logits [b s, V / tp] and vocabulary-parallel cross entropy (Megatron-LM, arXiv 1909.08053,
// section 3), which all-reduces maximum, sum and target logit. The logits are kept in fp32 for backward
// (arXiv 2205.05198, section 4.3: 4 sbv).
#include <algorithm>

#include "core/graph/body_writer.h"
#include "core/model/block_kind.h"
#include "core/model/block_tensors.h"

namespace core::blocks {

namespace {

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const double tokens = context.tokens(), h = static_cast<double>(model.hidden);
  const double a = context.recipe->activation_bytes, whole = a * tokens * h;
  const auto vocab = padded_vocab(block.shape.at("vocab"), context) / context.tp;
  const double logits = tokens * static_cast<double>(vocab);
  const BodyWriter::Linear linear{"logits", tokens, model.hidden, vocab, true};

  enter_tensor_region(writer, context, whole);
  writer.linear_forward(linear);
  writer.memory_bound("loss", Direction::forward, context.loss_traffic_forward * logits);
  for (const auto* part : {"loss_maximum", "loss_target", "loss_sum"}) {
    writer.tensor_collective(OpKind::all_reduce, part, Direction::forward, 4.0 * tokens);
  }
  writer.memory_bound("loss_backward", Direction::backward, context.loss_traffic_backward * logits);
  if (context.sp) {
    writer.tensor_collective(OpKind::all_gather, "tp_input_all_gather", Direction::backward, whole, true);
    writer.linear_input_gradient(linear);
    writer.tensor_collective(OpKind::reduce_scatter, "tp_gradient_reduce_scatter", Direction::backward, whole, true);
  } else {
    writer.linear_input_gradient(linear);
    writer.tensor_collective(OpKind::all_reduce, "tp_gradient_all_reduce", Direction::backward, whole, true);
  }
  writer.linear_weight_gradient(linear);

  writer.save_gemm_input("output input", a * context.tokens_between_blocks() * h);
  writer.save("logits", context.logits_saved_bytes * logits);
  body.forward_transient = std::max(body.forward_transient, Bytes{context.logits_transient_bytes * logits});
  body.backward_transient = std::max(body.backward_transient, Bytes{context.logits_transient_bytes * logits + whole});
}

// The output layer is multiplied whether it has a table of its own or not.
double flops_per_token(const Block& block, const ModelSpec& model, std::int64_t) {
  const auto dim = block.shape.at("dim");
  const double projection = dim == model.hidden ? 0.0 : static_cast<double>(dim * model.hidden);
  return 2.0 * (projection + static_cast<double>(block.shape.at("vocab")) * static_cast<double>(dim));
}

}  // namespace

extern const BlockKind output;
const BlockKind output = {"output", output_tensors, lower, flops_per_token};

}  // namespace core::blocks

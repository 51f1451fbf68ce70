// The projection of a multi-token prediction module: `inputs` vectors of width h side by side, [inputs x h, h]
// (DeepSeek-V3, arXiv 2412.19437, equation 21). Megatron-LM divides its columns and gathers the result.
#include <algorithm>

#include "core/model/block_kind.h"
#include "core/model/tensor_list.h"
#include "core/model/tensor_region.h"

namespace core::blocks {

namespace {

std::vector<Tensor> tensors(const Block& block, const ModelSpec& model) {
  TensorList out;
  out.matrix("projection.weight", block.shape.at("inputs") * model.hidden, model.hidden, Tensor::Split::columns);
  return out.take();
}

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const auto inputs = block.shape.at("inputs");
  const double tokens = context.tokens(), a = context.recipe->activation_bytes;
  const double whole = a * tokens * static_cast<double>(model.hidden), wide = whole * static_cast<double>(inputs);
  const BodyWriter::Linear linear{"mtp_projection", tokens, inputs * model.hidden, model.hidden / context.tp};
  enter_tensor_region(writer, context, wide);
  writer.linear_forward(linear);
  // Each rank has columns of the result; with sequence parallel each keeps its own tokens of what it gathers.
  writer.tensor_collective(OpKind::all_gather, "tp_output_all_gather", Direction::forward, whole);
  if (context.sp) {
    writer.tensor_collective(OpKind::all_gather, "tp_gradient_all_gather", Direction::backward, whole);
  }
  write_input_gradients(writer, context, {linear}, wide);
  writer.save_gemm_input("projection input", context.recipe->gemm_input_bytes * context.tokens_between_blocks() *
                                                 static_cast<double>(inputs * model.hidden), modules::norm);
  body.forward_transient = std::max(body.forward_transient, Bytes{wide + whole});
  body.backward_transient = std::max(body.backward_transient, Bytes{wide + whole});
}

double flops_per_token(const Block& block, const ModelSpec& model, const Span&) { return weight_flops(block, model); }

}  // namespace

extern const BlockKind projection;
const BlockKind projection = {"projection", tensors, lower, flops_per_token};

}  // namespace core::blocks

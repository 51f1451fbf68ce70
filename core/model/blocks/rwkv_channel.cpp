// Channel mixing of RWKV-5 (arXiv 2404.05892, appendix on channel mixing): sigmoid(r) times a feed-forward of squared ReLU;
// r [h, h] and key [h, ffn] read two mixtures of each token with the one before. Under tensor parallelism key and value are
// divided as an mlp is, r is whole on each rank and works on its own tokens with sequence parallel.
// Saves: the input, both mixtures, the activation's input and output, r and the value it multiplies.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/block_kind.h"
#include "core/model/tensor_list.h"
#include "core/model/tensor_region.h"

namespace core::blocks {

namespace {

using Split = Tensor::Split;

std::vector<Tensor> tensors(const Block& block, const ModelSpec& model) {
  const auto h = model.hidden, ffn = block.shape.at("ffn");
  TensorList out;
  out.vector("key.mix", h, Split::none);
  out.vector("receptance.mix", h, Split::none);
  out.matrix("key.weight", h, ffn, Split::columns);
  out.matrix("receptance.weight", h, h, Split::none);
  out.matrix("value.weight", ffn, h, Split::rows);
  return out.take();
}

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const auto h = model.hidden, ffn = block.shape.at("ffn") / context.tp;
  const double tokens = context.tokens(), own = context.tokens_between_blocks() * static_cast<double>(h);
  const double a = context.recipe->activation_bytes, g = context.recipe->gemm_input_bytes;
  const double whole = a * tokens * static_cast<double>(h), inner = tokens * static_cast<double>(ffn);
  const BodyWriter::Linear key{"channel_key", tokens, h, ffn}, value{"channel_value", tokens, ffn, h};
  const BodyWriter::Linear receptance{"channel_receptance", context.tokens_between_blocks(), h, h};

  writer.memory_bound("token_shift", Direction::forward, 3.0 * a * own);
  writer.linear_forward(receptance);
  enter_tensor_region(writer, context, whole);
  writer.linear_forward(key);
  writer.memory_bound("activation", Direction::forward, context.activation_traffic * 2.0 * a * inner, modules::activation);
  writer.linear_forward(value);
  leave_tensor_region(writer, context, whole);
  writer.memory_bound("channel_gate", Direction::forward, 3.0 * a * own);
  write_residual(writer, model, context);

  write_dropout_backward(writer, model, context);
  writer.memory_bound("channel_gate_backward", Direction::backward, 5.0 * a * own);
  write_output_gradients(writer, context, value, whole);
  writer.memory_bound("activation_backward", Direction::backward, context.activation_traffic * 3.0 * a * inner);
  write_input_gradients(writer, context, {key}, whole);
  writer.linear_input_gradient(receptance);
  writer.linear_weight_gradient(receptance);
  writer.memory_bound("token_shift_backward", Direction::backward, 4.0 * a * own);
  write_residual_backward(writer, model, context);

  writer.save("channel input", a * own, modules::norm);
  writer.save_gemm_input("channel mixtures", 2.0 * g * own);
  writer.save("activation input", a * inner);
  writer.save_gemm_input("activation output", g * inner, modules::activation);
  writer.save("receptance and value", 2.0 * a * own);
  if (context.dropout_hidden) writer.save("channel dropout mask", own);
  body.forward_transient = std::max(body.forward_transient, Bytes{whole});
  body.backward_transient =
      std::max(body.backward_transient, Bytes{2.0 * a * inner + (context.tp > 1 ? 2.0 : 1.0) * whole});
}

double flops_per_token(const Block& block, const ModelSpec& model, const Span&) { return weight_flops(block, model); }

std::optional<std::string> why_not_tensor(const Block& block, std::int64_t tp) {
  const auto ffn = block.shape.at("ffn");
  if (ffn % tp == 0) return std::nullopt;
  return fmt::format("ffn {} does not divide by tp={}", ffn, tp);
}

}  // namespace

extern const BlockKind rwkv_channel;
const BlockKind rwkv_channel = {"rwkv_channel", tensors, lower, flops_per_token, nullptr, why_not_tensor};

}  // namespace core::blocks

// Multi-head, grouped-query and multi-query attention: qkv projection, optional rotary positions and q/k norms, core
// attention (unfused or FlashAttention), output projection. Saves (arXiv 2205.05198, section 4.1, attention: 11 sbh +
// 5 a s^2 b): the input, q, k and v, the projection's input 2 sbh each, the mask of dropout sbh, and unfused the softmax
// and its dropout's mask and output, 2 + 1 + 2 bytes a score. FlashAttention keeps one fp32 log-sum-exp a row instead
// (arXiv 2205.14135). Core-attention recompute ("selective") drops what grows with s^2.
#include <algorithm>
#include <utility>

#include "core/graph/core_attention.h"
#include "core/model/block_kind.h"
#include "core/model/block_tensors.h"

namespace core::blocks {

namespace {

struct Shape {
  CoreAttention core;
  std::int64_t q, kv;  // widths on one rank
};

Shape shape_of(const Block& block, const BodyContext& context) {
  Shape s{};
  s.core.heads = block.shape.at("heads") / context.tp;
  s.core.kv_heads = std::max<std::int64_t>(1, block.shape.at("kv_heads") / context.tp);
  s.core.qk_dim = s.core.v_dim = block.shape.at("head_dim");
  s.core.window = block.shape.get("window", 0);
  s.core.chunk = block.shape.get("chunk", 0);
  s.q = s.core.heads * s.core.qk_dim;
  s.kv = s.core.kv_heads * s.core.qk_dim;
  return s;
}

BodyWriter::Linear projection(std::string name, double tokens, std::int64_t in, std::int64_t out) {
  BodyWriter::Linear linear{std::move(name), tokens, in, out};
  linear.kind = LinearKind::attention;
  return linear;
}
BodyWriter::Linear qkv_of(const Shape& s, double tokens, std::int64_t hidden) {
  return projection("qkv", tokens, hidden, s.q + 2 * s.kv);
}
BodyWriter::Linear out_of(const Shape& s, double tokens, std::int64_t hidden) {
  return projection("attention_out", tokens, s.q, hidden);
}

void write_forward(BodyWriter& writer, const Block& block, const ModelSpec& model, const BodyContext& context,
                   const Shape& s) {
  const double tokens = context.tokens(), h = static_cast<double>(model.hidden);
  const double a = context.recipe->activation_bytes, whole = a * tokens * h;
  const double qk = tokens * static_cast<double>(s.q + s.kv);
  enter_tensor_region(writer, context, whole);
  writer.linear_forward(qkv_of(s, tokens, model.hidden));
  if (block.shape.get("qk_norm", 0) != 0) {
    writer.memory_bound("qk_norm", Direction::forward, context.norm_traffic * 2.0 * a * qk);
  }
  if (block.shape.get("rope", 0) != 0) {
    writer.memory_bound("rope", Direction::forward, context.rope_traffic * 2.0 * a * qk);
  }
  write_core_attention(writer, s.core, context, Direction::forward);
  writer.linear_forward(out_of(s, tokens, model.hidden));
  leave_tensor_region(writer, context, whole);
  if (context.reduces_output) {
    const double mask = context.dropout_hidden ? 1.0 : 0.0;
    writer.memory_bound("residual", Direction::forward, (3.0 * a + mask) * context.tokens_between_blocks() * h);
  }
}

void write_backward(BodyWriter& writer, const Block& block, const ModelSpec& model, const BodyContext& context,
                    const Shape& s) {
  const double tokens = context.tokens(), h = static_cast<double>(model.hidden);
  const double between = context.tokens_between_blocks();
  const double a = context.recipe->activation_bytes, whole = a * tokens * h;
  const double qk = tokens * static_cast<double>(s.q + s.kv);
  const auto qkv = qkv_of(s, tokens, model.hidden), out = out_of(s, tokens, model.hidden);
  if (context.dropout_hidden) {
    writer.memory_bound("dropout_backward", Direction::backward, (2.0 * a + 1.0) * between * h);
  }
  if (context.sp && context.reduces_output) {
    writer.tensor_collective(OpKind::all_gather, "tp_gradient_all_gather", Direction::backward, whole);
  }
  writer.linear_input_gradient(out);
  writer.linear_weight_gradient(out);
  write_core_attention(writer, s.core, context, Direction::backward);
  if (block.shape.get("rope", 0) != 0) {
    writer.memory_bound("rope_backward", Direction::backward, context.rope_traffic * 2.0 * a * qk);
  }
  if (block.shape.get("qk_norm", 0) != 0) {
    writer.memory_bound("qk_norm_backward", Direction::backward, context.norm_traffic * 3.0 * a * qk);
  }
  if (context.sp) {
    writer.tensor_collective(OpKind::all_gather, "tp_input_all_gather", Direction::backward, whole, true);
    writer.linear_input_gradient(qkv);
    writer.tensor_collective(OpKind::reduce_scatter, "tp_gradient_reduce_scatter", Direction::backward, whole, true);
  } else {
    writer.linear_input_gradient(qkv);
    writer.tensor_collective(OpKind::all_reduce, "tp_gradient_all_reduce", Direction::backward, whole, true);
  }
  writer.linear_weight_gradient(qkv);
  writer.memory_bound("residual_backward", Direction::backward, 3.0 * a * between * h);
}

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const auto s = shape_of(block, context);
  write_forward(writer, block, model, context, s);
  write_backward(writer, block, model, context, s);

  const double tokens = context.tokens(), between = context.tokens_between_blocks();
  const double h = static_cast<double>(model.hidden), a = context.recipe->activation_bytes;
  const double g = context.gemm_input_bytes();
  writer.save_gemm_input("attention input", g * between * h, modules::norm);
  writer.save("q, k and v", a * tokens * static_cast<double>(s.q + 2 * s.kv));
  if (block.shape.get("qk_norm", 0) != 0) {
    writer.save("q/k norm input", a * tokens * static_cast<double>(s.q + s.kv));
  }
  save_core_attention(writer, s.core, context);
  writer.save_gemm_input("attention output", g * tokens * static_cast<double>(s.q));
  if (context.dropout_hidden) writer.save("attention dropout mask", between * h);

  const double whole = a * tokens * h;
  const double scores = unfused_scores(s.core, context);
  body.forward_transient = std::max(body.forward_transient, Bytes{whole + scores});
  body.backward_transient =
      std::max(body.backward_transient,
               Bytes{2.0 * scores + a * tokens * static_cast<double>(s.q + 2 * s.kv) +
                     (context.tp > 1 ? 2.0 : 1.0) * whole});
}

}  // namespace

extern const BlockKind attention;
const BlockKind attention = {"attention", attention_tensors, lower};

}  // namespace core::blocks

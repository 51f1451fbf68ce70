// Multi-head, grouped-query and multi-query attention: qkv projection, optional rotary positions and q/k norms, core
// attention (unfused or FlashAttention), an optional gate on its output (Qwen3-Next), output projection. It sees the whole
// sequence, a window or a chunk of it; sinks (gpt-oss) add a number a head to the softmax's sum, at no cost.
// Saves (arXiv 2205.05198, section 4.1, attention: 11 sbh + 5 a s^2 b): the input, q, k and v, the projection's input 2 sbh
// each, the mask of dropout sbh, and unfused the softmax and its dropout's mask and output, 2 + 1 + 2 bytes a score.
// FlashAttention keeps one fp32 log-sum-exp a row instead (arXiv 2205.14135). Core-attention recompute ("selective") drops
// what grows with s^2. A gate is kept with the output before it.
#include <algorithm>
#include <utility>

#include "core/graph/core_attention.h"
#include "core/model/block_kind.h"
#include "core/model/block_tensors.h"
#include "core/model/tensor_region.h"

namespace core::blocks {

namespace {

struct Shape {
  CoreAttention core;
  std::int64_t q, kv;  // widths on one rank
  bool gate, qk_norm, rope;

  std::int64_t in() const { return q + 2 * kv + (gate ? q : 0); }
  double q_and_k() const { return static_cast<double>(q + kv); }
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
  s.gate = block.shape.get("gate", 0) != 0;
  s.qk_norm = block.shape.get("qk_norm", 0) != 0;
  s.rope = block.shape.get("rope", 0) != 0;
  return s;
}

BodyWriter::Linear projection(std::string name, double tokens, std::int64_t in, std::int64_t out) {
  BodyWriter::Linear linear{std::move(name), tokens, in, out};
  linear.kind = LinearKind::attention;
  return linear;
}
BodyWriter::Linear qkv_of(const Shape& s, double tokens, std::int64_t hidden) {
  return projection("qkv", tokens, hidden, s.in());
}
BodyWriter::Linear out_of(const Shape& s, double tokens, std::int64_t hidden) {
  return projection("attention_out", tokens, s.q, hidden);
}

void write_forward(BodyWriter& writer, const ModelSpec& model, const BodyContext& context, const Shape& s) {
  const double tokens = context.tokens(), a = context.recipe->activation_bytes;
  const double whole = a * tokens * static_cast<double>(model.hidden);
  enter_tensor_region(writer, context, whole);
  writer.linear_forward(qkv_of(s, tokens, model.hidden));
  const double qk = a * tokens * s.q_and_k();
  if (s.qk_norm) writer.memory_bound("qk_norm", Direction::forward, context.norm_traffic * 2.0 * qk);
  if (s.rope) writer.memory_bound("rope", Direction::forward, context.rope_traffic * 2.0 * qk);
  write_core_attention(writer, s.core, context, Direction::forward);
  if (s.gate) {
    writer.memory_bound("attention_gate", Direction::forward,
                        context.activation_traffic * 3.0 * a * tokens * s.core.out_width(), modules::activation);
  }
  writer.linear_forward(out_of(s, tokens, model.hidden));
  leave_tensor_region(writer, context, whole);
  if (context.reduces_output) write_residual(writer, model, context);
}

void write_backward(BodyWriter& writer, const ModelSpec& model, const BodyContext& context, const Shape& s) {
  const double tokens = context.tokens(), a = context.recipe->activation_bytes;
  const double whole = a * tokens * static_cast<double>(model.hidden);
  write_dropout_backward(writer, model, context);
  write_output_gradients(writer, context, out_of(s, tokens, model.hidden), whole);
  if (s.gate) {
    writer.memory_bound("attention_gate_backward", Direction::backward,
                        context.activation_traffic * 5.0 * a * tokens * s.core.out_width());
  }
  write_core_attention(writer, s.core, context, Direction::backward);
  const double qk = a * tokens * s.q_and_k();
  if (s.rope) writer.memory_bound("rope_backward", Direction::backward, context.rope_traffic * 2.0 * qk);
  if (s.qk_norm) writer.memory_bound("qk_norm_backward", Direction::backward, context.norm_traffic * 3.0 * qk);
  write_input_gradients(writer, context, {qkv_of(s, tokens, model.hidden)}, whole);
  write_residual_backward(writer, model, context);
}

void save(BodyWriter& writer, const ModelSpec& model, const BodyContext& context, const Shape& s) {
  const double tokens = context.tokens(), between = context.tokens_between_blocks();
  const double h = static_cast<double>(model.hidden), a = context.recipe->activation_bytes;
  const double g = context.recipe->gemm_input_bytes;
  writer.save_gemm_input("attention input", g * between * h, modules::norm);
  writer.save("q, k and v", a * tokens * static_cast<double>(s.q + 2 * s.kv));
  if (s.qk_norm) writer.save("q/k norm input", a * tokens * s.q_and_k());
  save_core_attention(writer, s.core, context);
  if (s.gate) {
    writer.save("attention gate", a * tokens * s.core.out_width());
    writer.save("attention before its gate", a * tokens * s.core.out_width());
  }
  writer.save_gemm_input("attention output", g * tokens * static_cast<double>(s.q), s.gate ? modules::activation : 0);
  if (context.dropout_hidden) writer.save("attention dropout mask", between * h);
}

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const auto s = shape_of(block, context);
  write_forward(writer, model, context, s);
  write_backward(writer, model, context, s);
  save(writer, model, context, s);

  const double tokens = context.tokens(), a = context.recipe->activation_bytes;
  const double whole = a * tokens * static_cast<double>(model.hidden);
  const double scores = unfused_scores(s.core, context);
  const double exchanged = exchange_buffers(s.core, context, Direction::forward);
  const double exchanged_backward = exchange_buffers(s.core, context, Direction::backward);
  body.forward_transient = Bytes{whole + scores + exchanged};
  // The gradient of the residual stream all along; that of attention's output gathered, or with its scores, or those of
  // queries, keys and values; of the input, beside the gathered one, when what attention saved is gone.
  const double gathered = context.sp ? whole : 0.0;
  const double output = a * tokens * static_cast<double>(s.q), inputs = a * tokens * static_cast<double>(s.in());
  const double core = output + std::max(gathered, 2.0 * scores + exchanged_backward + inputs);
  const double entering = whole + gathered - output;
  body.backward_transient =
      Bytes{std::max(core, entering) + a * context.tokens_between_blocks() * static_cast<double>(model.hidden)};
}

// Scores and weighted values, 2 heads head_dim each for a key that a query meets: of its window, of its chunk (whole, or
// causal half of it).
double flops_per_token(const Block& block, const ModelSpec& model, const Span& span) {
  const auto chunk = block.shape.get("chunk", 0);
  const Span met{chunk > 0 ? std::min(chunk, span.seq) : span.seq, span.causal};
  return weight_flops(block, model) + 4.0 * met.keys(block.shape.get("window", 0)) *
                                          static_cast<double>(block.shape.at("heads") * block.shape.at("head_dim"));
}

double cache_per_token(const Block& block) {
  return 2.0 * static_cast<double>(block.shape.at("kv_heads") * block.shape.at("head_dim"));
}

std::optional<std::string> why_not_tensor(const Block& block, std::int64_t tp) {
  if (auto reason = why_not_divided(block.shape.at("heads"), "heads", tp)) return reason;
  // Fewer key-value heads than ranks are copied to the ranks that share one.
  const auto kv = block.shape.at("kv_heads");
  if (tp % kv == 0) return std::nullopt;
  return why_not_divided(kv, "key-value heads", tp);
}

}  // namespace

extern const BlockKind attention;
const BlockKind attention = {"attention", attention_tensors, lower, flops_per_token, cache_per_token, why_not_tensor};

}  // namespace core::blocks

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): keys and values are projected down to one latent
// of kv_rank a token, which all heads share with a rotary key of rope_dim, and up again to heads x (nope_dim + v_dim);
// queries pass a latent of q_rank, or none (q_rank 0). As Megatron-LM divides it: the down-projections are whole on each
// tensor-parallel rank and work on its own tokens with sequence parallel, so that only latents are gathered; the
// up-projections are divided by heads.
//
// With an indexer (DeepSeek-V3.2, arXiv 2512.02556, section 2.1) each query meets only index_top_k keys. The indexer's score
// is sum_j w_j relu(q_j . k) over index_heads narrow heads of index_dim and one key a token: 2 (index_dim + 1) FLOPs a head
// and pair, an attention over all keys whose values are one number wide. It is whole on each tensor-parallel rank; its own
// loss is not written.
//
// Saves: the input; of each latent the norm's input and output; q and k of nope_dim + rope_dim, v; the log-sum-exp; the
// output. Recompute of mla_up keeps the latents only, and repeats norms, up-projections and rotary positions
// (Megatron-LM's mla_up_proj).
#include <algorithm>
#include <utility>

#include "core/graph/core_attention.h"
#include "core/model/block_kind.h"
#include "core/model/tensor_list.h"
#include "core/model/tensor_region.h"

namespace core::blocks {

namespace {

using Split = Tensor::Split;

bool has_indexer(const Block& block) { return block.shape.get("index_top_k", 0) > 0; }

void add_indexer(const Attributes& shape, std::int64_t h, TensorList& out) {
  const auto heads = shape.at("index_heads"), dim = shape.at("index_dim");
  out.matrix("indexer.q.weight", shape.at("q_rank"), heads * dim, Split::none);
  out.matrix("indexer.k.weight", h, dim, Split::none);
  out.vector("indexer.k_norm.weight", dim, Split::none);
  out.vector("indexer.k_norm.bias", dim, Split::none);
  out.matrix("indexer.weights.weight", h, heads, Split::none);
}

std::vector<Tensor> tensors(const Block& block, const ModelSpec& model) {
  const auto& shape = block.shape;
  const auto h = model.hidden, heads = shape.at("heads"), q_rank = shape.at("q_rank"), kv_rank = shape.at("kv_rank");
  const auto nope = shape.at("nope_dim"), rope = shape.at("rope_dim"), v = shape.at("v_dim");
  const bool bias = shape.get("bias", 0) != 0;
  TensorList out;
  if (q_rank > 0) {
    out.matrix("q_down.weight", h, q_rank, Split::none);
    out.vector_if(bias, "q_down.bias", q_rank, Split::none);
    out.vector("q_norm.weight", q_rank, Split::none);
    out.matrix("q_up.weight", q_rank, heads * (nope + rope), Split::heads);
  } else {
    out.matrix("q.weight", h, heads * (nope + rope), Split::heads);
  }
  out.matrix("kv_down.weight", h, kv_rank + rope, Split::none);
  out.vector_if(bias, "kv_down.bias", kv_rank + rope, Split::none);
  out.vector("kv_norm.weight", kv_rank, Split::none);
  out.matrix("kv_up.weight", kv_rank, heads * (nope + v), Split::heads);
  if (has_indexer(block)) add_indexer(shape, h, out);
  out.matrix("out.weight", heads * v, h, Split::rows);
  out.vector_if(bias, "out.bias", h, Split::none);
  return out.take();
}

// Sizes on one rank.
struct Shape {
  CoreAttention core;
  std::int64_t q_rank, kv_rank, nope, rope;
  std::int64_t index_heads, index_dim;  // 0 without an indexer
  double tokens, own;                   // of the micro-batch, and those the down-projections work on
  double a, g, whole;
  BodyWriter::Linear q_down, q_up, kv_down, kv_up, out;

  bool q_latent() const { return q_rank > 0; }
  double heads() const { return static_cast<double>(core.heads); }
  double qk() const { return heads() * static_cast<double>(core.qk_dim); }
};

BodyWriter::Linear projection(std::string name, double tokens, std::int64_t in, std::int64_t out, Modules repeated_by = 0) {
  BodyWriter::Linear linear{std::move(name), tokens, in, out};
  linear.repeated_by = repeated_by;
  linear.kind = LinearKind::attention;
  return linear;
}

void set_linears(Shape& s, std::int64_t h) {
  const auto q = s.core.heads * s.core.qk_dim;
  s.q_down = projection("q_down", s.own, h, s.q_rank);
  s.q_up = s.q_latent() ? projection("q_up", s.tokens, s.q_rank, q, modules::mla_up)
                        : projection("q", s.tokens, h, q, modules::mla_up);
  s.kv_down = projection("kv_down", s.own, h, s.kv_rank + s.rope);
  s.kv_up = projection("kv_up", s.tokens, s.kv_rank, s.core.heads * (s.nope + s.core.v_dim), modules::mla_up);
  s.out = projection("attention_out", s.tokens, s.core.heads * s.core.v_dim, h);
}

Shape shape_of(const Block& block, const ModelSpec& model, const BodyContext& context) {
  const auto& shape = block.shape;
  Shape s{};
  s.q_rank = shape.at("q_rank"), s.kv_rank = shape.at("kv_rank");
  s.nope = shape.at("nope_dim"), s.rope = shape.at("rope_dim");
  s.core.heads = s.core.kv_heads = shape.at("heads") / context.tp;
  s.core.qk_dim = s.nope + s.rope;
  s.core.v_dim = shape.at("v_dim");
  // A sequence of no more tokens than are chosen is met whole.
  const auto chosen = shape.get("index_top_k", 0);
  s.core.top_k = chosen < context.seq ? chosen : 0;
  s.index_heads = shape.get("index_heads", 0), s.index_dim = shape.get("index_dim", 0);
  s.tokens = context.tokens(), s.own = context.tokens_between_blocks();
  s.a = context.recipe->activation_bytes, s.g = context.recipe->gemm_input_bytes;
  s.whole = s.a * s.tokens * static_cast<double>(model.hidden);
  set_linears(s, model.hidden);
  return s;
}

// The gathered latent of `rank` elements a token.
double latent(const Shape& s, std::int64_t rank) { return s.a * s.tokens * static_cast<double>(rank); }
double own_latent(const Shape& s, std::int64_t rank) { return s.a * s.own * static_cast<double>(rank); }

void gather_latent(BodyWriter& writer, const BodyContext& context, const Shape& s, std::int64_t rank) {
  if (!context.sp) return;
  writer.collective(Scope::tensor, OpKind::all_gather, "tp_all_gather", Direction::forward, latent(s, rank), false,
                    modules::mla_up);
}

// Rotary positions of the queries; keys and values are put together from the up-projection and the shared rotary key.
double rope_bytes(const Shape& s) {
  const double q = 2.0 * s.heads() * static_cast<double>(s.rope);
  const double up = s.heads() * static_cast<double>(s.nope + s.core.v_dim) + static_cast<double>(s.rope);
  return s.a * s.tokens * (q + up + s.core.kv_width());
}

CoreAttention indexer_of(const Shape& s) {
  CoreAttention indexer;
  indexer.name = "indexer";
  indexer.heads = s.index_heads;
  indexer.qk_dim = s.index_dim;
  indexer.v_dim = 1;
  indexer.sums_values = false;
  return indexer;
}

std::vector<BodyWriter::Linear> indexer_linears(const Shape& s, std::int64_t h) {
  return {projection("indexer_q", s.tokens, s.q_rank, s.index_heads * s.index_dim),
          projection("indexer_k", s.own, h, s.index_dim),
          projection("indexer_weights", s.own, h, s.index_heads)};
}

// Scores in fp32 are written and read once to choose keys; causal, half of them exist.
double choosing_bytes(const Shape& s, const BodyContext& context) {
  return 2.0 * 4.0 * s.tokens * static_cast<double>(context.seq) / 2.0;
}

void write_indexer(BodyWriter& writer, const ModelSpec& model, const BodyContext& context, const Shape& s) {
  for (const auto& linear : indexer_linears(s, model.hidden)) writer.linear_forward(linear);
  write_core_attention(writer, indexer_of(s), context, Direction::forward);
  writer.memory_bound("indexer_top_k", Direction::forward, choosing_bytes(s, context));
}

void write_indexer_backward(BodyWriter& writer, const ModelSpec& model, const BodyContext& context, const Shape& s) {
  write_core_attention(writer, indexer_of(s), context, Direction::backward);
  // Its input is cut off from the model's gradient: only its own weights get one.
  for (const auto& linear : indexer_linears(s, model.hidden)) writer.linear_weight_gradient(linear);
}

void write_forward(BodyWriter& writer, const ModelSpec& model, const BodyContext& context, const Shape& s) {
  constexpr auto forward = Direction::forward;
  constexpr auto norms = modules::mla_up | modules::norm;
  if (s.q_latent()) {
    writer.linear_forward(s.q_down);
    writer.memory_bound("q_latent_norm", forward, context.norm_traffic * 2.0 * own_latent(s, s.q_rank), norms);
  }
  writer.linear_forward(s.kv_down);
  writer.memory_bound("kv_latent_norm", forward, context.norm_traffic * 2.0 * own_latent(s, s.kv_rank), norms);
  if (s.q_latent()) {
    gather_latent(writer, context, s, s.q_rank);
  } else {
    enter_tensor_region(writer, context, s.whole, modules::mla_up);
  }
  writer.linear_forward(s.q_up);
  gather_latent(writer, context, s, s.kv_rank + s.rope);
  writer.linear_forward(s.kv_up);
  writer.memory_bound("rope", forward, context.rope_traffic * rope_bytes(s), modules::mla_up);
  if (s.index_heads > 0) write_indexer(writer, model, context, s);
  write_core_attention(writer, s.core, context, forward);
  writer.linear_forward(s.out);
  leave_tensor_region(writer, context, s.whole);
  if (context.reduces_output) write_residual(writer, model, context);
}

void write_backward(BodyWriter& writer, const ModelSpec& model, const BodyContext& context, const Shape& s) {
  constexpr auto backward = Direction::backward;
  write_dropout_backward(writer, model, context);
  write_output_gradients(writer, context, s.out, s.whole);
  write_core_attention(writer, s.core, context, backward);
  if (s.index_heads > 0) write_indexer_backward(writer, model, context, s);
  writer.memory_bound("rope_backward", backward, context.rope_traffic * rope_bytes(s));
  write_input_gradients(writer, context, {s.kv_up}, latent(s, s.kv_rank + s.rope));
  write_input_gradients(writer, context, {s.q_up}, s.q_latent() ? latent(s, s.q_rank) : s.whole);
  writer.memory_bound("kv_latent_norm_backward", backward, context.norm_traffic * 3.0 * own_latent(s, s.kv_rank));
  writer.linear_input_gradient(s.kv_down);
  writer.linear_weight_gradient(s.kv_down);
  if (s.q_latent()) {
    writer.memory_bound("q_latent_norm_backward", backward, context.norm_traffic * 3.0 * own_latent(s, s.q_rank));
    writer.linear_input_gradient(s.q_down);
    writer.linear_weight_gradient(s.q_down);
  }
  write_residual_backward(writer, model, context);
}

void save(BodyWriter& writer, const ModelSpec& model, const BodyContext& context, const Shape& s) {
  constexpr auto norms = modules::mla_up | modules::norm;
  const double gemm = s.g / s.a;
  writer.save_gemm_input("attention input", gemm * own_latent(s, model.hidden), modules::norm);
  if (s.q_latent()) {
    writer.save("query latent", own_latent(s, s.q_rank));
    writer.save_gemm_input("query latent, normed", gemm * own_latent(s, s.q_rank), norms);
  }
  writer.save("key-value latent", own_latent(s, s.kv_rank + s.rope));
  writer.save_gemm_input("key-value latent, normed", gemm * own_latent(s, s.kv_rank), norms);
  writer.save("q, k and v", s.a * s.tokens * (s.core.q_width() + s.core.kv_width()), modules::mla_up);
  if (s.index_heads > 0) {
    const auto width = s.index_heads * s.index_dim + s.index_dim + s.index_heads;
    writer.save("indexer q, k and weights", s.a * s.tokens * static_cast<double>(width));
    writer.save("chosen keys", 4.0 * s.tokens * static_cast<double>(s.core.top_k > 0 ? s.core.top_k : context.seq));
  }
  save_core_attention(writer, s.core, context);
  writer.save_gemm_input("attention output", s.g * s.tokens * s.core.out_width());
  if (context.dropout_hidden) writer.save("attention dropout mask", s.own * static_cast<double>(model.hidden));
}

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const auto s = shape_of(block, model, context);
  write_forward(writer, model, context, s);
  write_backward(writer, model, context, s);
  save(writer, model, context, s);

  const double scores = unfused_scores(s.core, context);
  // The indexer's scores of one micro-batch live until keys are chosen.
  const double indexer = s.index_heads > 0 ? choosing_bytes(s, context) / 2.0 : 0.0;
  const double exchanged = exchange_buffers(s.core, context, Direction::forward);
  const double exchanged_backward = exchange_buffers(s.core, context, Direction::backward);
  body.forward_transient = std::max(body.forward_transient, Bytes{s.whole + scores + indexer + exchanged});
  body.backward_transient = std::max(body.backward_transient,
                                     Bytes{2.0 * scores + indexer + exchanged_backward +
                                           s.a * s.tokens * (s.core.q_width() + s.core.kv_width()) +
                                           (context.tp > 1 ? 2.0 : 1.0) * s.whole});
}

// Scores of nope_dim + rope_dim and values of v_dim over the keys that a query meets; the indexer's over all keys.
double flops_per_token(const Block& block, const ModelSpec& model, const Span& span) {
  const auto& shape = block.shape;
  const double keys = span.keys(shape.get("index_top_k", 0));
  const double width = static_cast<double>(shape.at("nope_dim") + shape.at("rope_dim") + shape.at("v_dim"));
  const double indexer = static_cast<double>(shape.get("index_heads", 0) * (shape.get("index_dim", 0) + 1)) * span.keys();
  return weight_flops(block, model) + 2.0 * keys * static_cast<double>(shape.at("heads")) * width + 2.0 * indexer;
}

// The latent, the rotary key, and the indexer's key.
double cache_per_token(const Block& block) {
  return static_cast<double>(block.shape.at("kv_rank") + block.shape.at("rope_dim") + block.shape.get("index_dim", 0));
}

std::optional<std::string> why_not_tensor(const Block& block, std::int64_t tp) {
  return why_not_divided(block.shape.at("heads"), "heads", tp);
}

}  // namespace

extern const BlockKind mla;
const BlockKind mla = {"mla", tensors, lower, flops_per_token, cache_per_token, why_not_tensor};

}  // namespace core::blocks

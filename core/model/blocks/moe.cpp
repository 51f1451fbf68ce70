// Mixture of experts: a router [h, E] picks top_k of E experts for each token; the token's copies travel to the ranks that
// hold them (dispatch), pass a feed-forward of width ffn each (one grouped GEMM over a rank's experts), travel back
// (combine) and are summed. Shared experts are a dense feed-forward beside them (DeepSeekMoE, arXiv 2401.06066).
// GShard, arXiv 2006.16668, section 3 (dispatch, combine, capacity); Megatron-LM's alltoall dispatcher is what is written:
// permute, all-to-all over ep, all-gather over etp, sort by expert, experts, and the same back. Its tokens are those of a
// sequence-parallel rank, T. Copies of them on a rank:
//   balanced     rows = T top_k etp
//   overload     times tokens on the fullest rank over the mean: that rank is written
//   capacity c   T top_k etp c, since each expert's share is padded to its capacity
// The router's weights multiply the activation of the copies (as Megatron-LM does), so that no output of an expert is kept.
// Biases of outputs are multiplied by them too, one expert after another and in no GEMM (BodyContext::expert_biases).
// Saves: the input, the router's scores in fp32 and its choice (1 byte) for each expert, each copy's weight (fp32); of the
// copies the input, the activation's input and its output, without a gate before it is weighted too; the same of the shared
// experts. Recompute of moe keeps only the input and repeats everything, its all-to-alls included; recompute of activation
// drops the activation's output.
#include <algorithm>

#include "core/model/block_kind.h"
#include "core/model/tensor_list.h"
#include "core/model/tensor_region.h"

namespace core::blocks {

namespace {

using Split = Tensor::Split;

std::vector<Tensor> tensors(const Block& block, const ModelSpec& model) {
  const auto& shape = block.shape;
  const auto h = model.hidden, experts = shape.at("experts"), ffn = shape.at("ffn"), shared = shape.at("shared_ffn");
  const bool gated = shape.at("gated") != 0, bias = shape.at("bias") != 0;
  TensorList out;
  out.matrix("router.weight", h, experts, Split::none);
  out.vector_if(shape.at("router_bias") != 0, "router.bias", experts, Split::none);
  out.vector_if(shape.at("selection_bias") != 0, "router.selection_bias", experts, Split::none);
  if (gated) {
    out.of_experts(experts, "experts.gate.weight", h, ffn, Split::columns);
    if (bias) out.of_experts(experts, "experts.gate.bias", ffn, 1, Split::rows);
  }
  out.of_experts(experts, "experts.up.weight", h, ffn, Split::columns);
  if (bias) out.of_experts(experts, "experts.up.bias", ffn, 1, Split::rows);
  out.of_experts(experts, "experts.down.weight", ffn, h, Split::rows);
  if (bias) out.of_experts(experts, "experts.down.bias", h, 1, Split::none);
  if (shared > 0) {
    out.matrix_if(gated, "shared.gate.weight", h, shared, Split::columns);
    out.matrix("shared.up.weight", h, shared, Split::columns);
    out.matrix("shared.down.weight", shared, h, Split::rows);
    out.vector_if(shape.at("shared_gate") != 0, "shared.switch", h, Split::none);
  }
  return out.take();
}

// Sizes on one rank.
struct Shape {
  std::int64_t experts, local, top_k, domains, ffn, shared;
  double h, a, g, kept;        // hidden size; bytes of an activation, of a kept GEMM input, of one of the activation
  double tokens, copies, rows; // of this rank before dispatch, their copies, copies that its experts get
  double ups;                  // inputs of the activation: 2 gated, else 1
  bool biased;                 // experts have biases
  bool overlaps;               // all-to-alls run beside the shared experts' next GEMM
  BodyWriter::Linear router, up, down, shared_up, shared_down;

  double travelling(double bytes) const { return bytes * copies * h; }
  double sent() const { return a * copies * h; }
  double received() const { return a * rows * h; }
  double activated() const { return rows * static_cast<double>(ffn); }
  double inner() const { return ups * activated(); }
};

Shape shape_of(const Block& block, const ModelSpec& model, const BodyContext& context) {
  const auto& shape = block.shape;
  Shape s{};
  s.experts = shape.at("experts");
  s.local = std::max<std::int64_t>(1, s.experts / context.ep);
  s.top_k = shape.at("top_k");
  s.domains = shape.at("groups_per_token");
  s.ffn = shape.at("ffn") / context.etp;
  s.shared = shape.at("shared_ffn") / context.tp;
  s.overlaps = context.overlap_experts && s.shared > 0;
  s.h = static_cast<double>(model.hidden);
  s.a = context.recipe->activation_bytes;
  s.g = context.recipe->gemm_input_bytes;
  s.kept = context.recipe->expert_activation_input_bytes;
  s.tokens = context.tokens_between_blocks();
  const double fullest = context.capacity > 0.0 ? context.capacity : context.overload;
  s.copies = s.tokens * static_cast<double>(s.top_k) * fullest;
  s.rows = s.copies * static_cast<double>(context.etp);
  const bool gated = shape.at("gated") != 0;
  s.ups = gated ? 2.0 : 1.0;
  const double each = s.rows / static_cast<double>(s.local);
  s.router = {"router", s.tokens, model.hidden, s.experts, false, 0, modules::moe, LinearKind::router};
  s.up = {"experts_up", each, model.hidden, gated ? 2 * s.ffn : s.ffn, false, s.local, modules::moe};
  s.down = {"experts_down", each, s.ffn, model.hidden, false, s.local, modules::moe};
  s.biased = shape.at("bias") != 0;
  s.shared_up = {"shared_up", context.tokens(), model.hidden, gated ? 2 * s.shared : s.shared, false, 0, modules::moe};
  s.shared_down = {"shared_down", context.tokens(), s.shared, model.hidden, false, 0, modules::moe};
  return s;
}

// Scores of the router, its softmax or sigmoid, and the choice: three passes in fp32.
double routing_bytes(const Shape& s) { return 3.0 * 4.0 * s.tokens * static_cast<double>(s.experts); }
// Each token is read and its copies written, or the reverse.
double permuting_bytes(const Shape& s) { return s.a * s.tokens * s.h + s.sent(); }

bool sorts(const Shape& s, const BodyContext& context) { return context.ep > 1 && s.local > 1; }

double shared_elements(const Shape& s, const BodyContext& context) {
  return context.tokens() * static_cast<double>(s.shared);
}

// Biases that are added apart, of the inner layer and of the output, which dispatchers of one-sided copies weight in fp32.
void write_biases(BodyWriter& writer, const BodyContext& context, const Shape& s, const char* name, Direction direction,
                  double bytes) {
  if (!s.biased || bytes <= 0.0) return;
  OpSpec spec;
  spec.name = name;
  spec.format = format_of(context.recipe->compute_format);
  spec.direction = direction;
  spec.batch = s.local;
  spec.bytes = Bytes{bytes};
  writer.op(std::move(spec), direction == Direction::forward ? modules::moe : 0);
}

void write_biases_forward(BodyWriter& writer, const BodyContext& context, const Shape& s) {
  const auto& b = context.expert_biases;
  const double each = context.dispatch == Dispatch::one_sided ? b.forward : b.narrow_forward;
  write_biases(writer, context, s, "experts_bias", Direction::forward, each * s.rows * s.h);
}

void write_biases_backward(BodyWriter& writer, const BodyContext& context, const Shape& s) {
  const auto& b = context.expert_biases;
  const double each = context.dispatch == Dispatch::one_sided ? b.backward : b.narrow_backward;
  write_biases(writer, context, s, "experts_bias_backward", Direction::backward, each * s.rows * s.h);
}

void write_experts(BodyWriter& writer, const BodyContext& context, const Shape& s) {
  constexpr auto forward = Direction::forward;
  writer.collective(Scope::expert_tensor, OpKind::all_gather, "etp_all_gather", forward, s.received(), false,
                    modules::moe);
  if (sorts(s, context)) writer.memory_bound("sort_by_expert", forward, 2.0 * s.received(), modules::moe);
  writer.linear_forward(s.up);
  write_biases(writer, context, s, "experts_bias_inner", forward, context.expert_biases.inner_forward * s.inner());
  writer.memory_bound("experts_activation", forward, context.activation_traffic * s.a * s.activated() * (s.ups + 1.0) + 4.0 * s.rows,
                      modules::activation | modules::moe);
  writer.linear_forward(s.down);
  write_biases_forward(writer, context, s);
  if (sorts(s, context)) writer.memory_bound("sort_by_rank", forward, 2.0 * s.received(), modules::moe);
  writer.collective(Scope::expert_tensor, OpKind::reduce_scatter, "etp_reduce_scatter", forward, s.received(), false,
                    modules::moe);
}

// The shared experts' GEMMs stand behind the all-to-alls, so that these can run beside them.
void write_forward(BodyWriter& writer, const ModelSpec& model, const BodyContext& context, const Shape& s) {
  constexpr auto forward = Direction::forward;
  const Recipe& recipe = *context.recipe;
  const double whole = s.a * context.tokens() * s.h;
  writer.linear_forward(s.router);
  writer.memory_bound("top_k", forward, routing_bytes(s), modules::moe);
  writer.memory_bound("permute", forward, permuting_bytes(s), modules::moe);
  if (s.shared > 0) enter_tensor_region(writer, context, whole, modules::moe);
  writer.expert_all_to_all("dispatch", forward, s.travelling(recipe.dispatch_bytes), s.top_k, s.domains, s.overlaps, modules::moe);
  if (s.shared > 0) {
    writer.linear_forward(s.shared_up);
    writer.memory_bound("shared_activation", forward, context.activation_traffic * s.a * shared_elements(s, context) * (s.ups + 1.0),
                        modules::activation | modules::moe);
  }
  write_experts(writer, context, s);
  writer.expert_all_to_all("combine", forward, s.travelling(recipe.combine_bytes), s.top_k, s.domains, s.overlaps, modules::moe);
  if (s.shared > 0) {
    writer.linear_forward(s.shared_down);
    leave_tensor_region(writer, context, whole, modules::moe);
    writer.memory_bound("add_shared", forward, 3.0 * s.a * s.tokens * s.h, modules::moe);
  }
  writer.memory_bound("unpermute", forward, permuting_bytes(s), modules::moe);
  write_residual(writer, model, context);
}

void write_experts_backward(BodyWriter& writer, const BodyContext& context, const Shape& s) {
  constexpr auto backward = Direction::backward;
  writer.collective(Scope::expert_tensor, OpKind::all_gather, "etp_gradient_all_gather", backward, s.received());
  if (sorts(s, context)) writer.memory_bound("sort_by_expert_backward", backward, 2.0 * s.received());
  write_biases_backward(writer, context, s);
  writer.linear_input_gradient(s.down);
  writer.linear_weight_gradient(s.down);
  writer.memory_bound("experts_activation_backward", backward,
                      context.activation_traffic * s.a * s.activated() * (2.0 * s.ups + 1.0) + 8.0 * s.rows);
  write_biases(writer, context, s, "experts_bias_inner_backward", backward, context.expert_biases.inner_backward * s.inner());
  writer.linear_input_gradient(s.up);
  writer.linear_weight_gradient(s.up);
  if (sorts(s, context)) writer.memory_bound("sort_by_rank_backward", backward, 2.0 * s.received());
  writer.collective(Scope::expert_tensor, OpKind::reduce_scatter, "etp_gradient_reduce_scatter", backward,
                    s.received());
}

void write_backward(BodyWriter& writer, const ModelSpec& model, const BodyContext& context, const Shape& s) {
  constexpr auto backward = Direction::backward;
  const Recipe& recipe = *context.recipe;
  const double whole = s.a * context.tokens() * s.h;
  write_dropout_backward(writer, model, context);
  writer.memory_bound("unpermute_backward", backward, permuting_bytes(s));
  writer.expert_all_to_all("combine_backward", backward, s.travelling(recipe.gradient_dispatch_bytes), s.top_k, s.domains, s.overlaps);
  if (s.shared > 0) {
    write_output_gradients(writer, context, s.shared_down, whole);
    writer.memory_bound("shared_activation_backward", backward,
                        context.activation_traffic * s.a * shared_elements(s, context) * (2.0 * s.ups + 1.0));
  }
  write_experts_backward(writer, context, s);
  writer.expert_all_to_all("dispatch_backward", backward, s.travelling(recipe.gradient_combine_bytes), s.top_k, s.domains);
  if (s.shared > 0) write_input_gradients(writer, context, {s.shared_up}, whole);
  writer.memory_bound("permute_backward", backward, permuting_bytes(s));
  writer.memory_bound("top_k_backward", backward, routing_bytes(s));
  writer.linear_input_gradient(s.router);
  writer.linear_weight_gradient(s.router);
  write_residual_backward(writer, model, context);
}

void save(BodyWriter& writer, const BodyContext& context, const Shape& s) {
  writer.save_gemm_input("moe input", s.a * s.tokens * s.h, modules::norm);
  writer.save("router scores", 4.0 * s.tokens * static_cast<double>(s.experts), modules::moe);
  writer.save("router choice", s.tokens * static_cast<double>(s.experts), modules::moe);
  writer.save("router weights", 4.0 * s.rows, modules::moe);
  writer.save_gemm_input("experts input", s.g * s.rows * s.h, modules::moe);
  writer.save(s.ups > 1.0 ? "experts gate and up" : "experts activation input", s.kept * s.activated() * s.ups,
              modules::moe);
  // Gated, one kernel weights the activation's output; without a gate a product of its own needs it for backward (Megatron-LM,
  // transformer/mlp.py and moe/experts.py: only gated activations are fused with the weights).
  if (s.ups == 1.0) {
    writer.save("experts activation before its weights", s.a * s.activated(), modules::activation | modules::moe);
  }
  writer.save_gemm_input("experts activation output", s.g * s.activated(), modules::activation | modules::moe);
  if (s.shared > 0) {
    const double elements = shared_elements(s, context);
    // Its input is the block's, kept once more where GEMM inputs are kept in a narrower format.
    if (s.g < s.a) writer.save_gemm_input("shared input", s.g * s.tokens * s.h, modules::norm | modules::moe);
    writer.save(s.ups > 1.0 ? "shared gate and up" : "shared activation input", s.kept * elements * s.ups, modules::moe);
    writer.save_gemm_input("shared activation output", s.g * elements, modules::activation | modules::moe);
  }
  if (context.dropout_hidden) writer.save("moe dropout mask", s.tokens * s.h);
}

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const auto s = shape_of(block, model, context);
  write_forward(writer, model, context, s);
  write_backward(writer, model, context, s);
  save(writer, context, s);
  // While copies travel, those sent and those received are alive; backward, the gradients of a rank's copies with those of
  // the activation.
  const double whole = s.a * context.tokens() * s.h;
  body.forward_transient = std::max(body.forward_transient, Bytes{s.sent() + s.received() + whole});
  body.backward_transient =
      std::max(body.backward_transient,
               Bytes{std::max(s.sent() + s.received(), s.received() + s.a * s.activated() * (s.ups + 1.0)) +
                     (context.tp > 1 ? 2.0 : 1.0) * whole});
}

double flops_per_token(const Block& block, const ModelSpec& model, const Span&) { return weight_flops(block, model); }

std::optional<std::string> why_not_tensor(const Block& block, std::int64_t tp) {
  return why_not_divided(block.shape.at("shared_ffn"), "columns of the shared experts", tp);
}

}  // namespace

extern const BlockKind moe;
const BlockKind moe = {"moe", tensors, lower, flops_per_token, nullptr, why_not_tensor};

}  // namespace core::blocks

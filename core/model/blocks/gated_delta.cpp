// Gated DeltaNet (arXiv 2412.06464) as Qwen3-Next has it: queries and keys of k_heads, values and an output gate of v_heads,
// a decay and a step a value head; a short convolution over queries, keys and values; the gated delta rule on v_heads, each
// query and key head standing for several; RMSNorm of each head times the gate; output projection. Saves what
// flash-linear-attention keeps: the convolution's input, q, k and v at v_heads, decay and step in fp32, the inverse of each
// chunk's triangular matrix (C numbers a token and head), the scan's output, the gate, and the output projection's input.
#include "core/model/block_kind.h"
#include "core/model/linear_mixer.h"
#include "core/model/tensor_list.h"

namespace core::blocks {

namespace {

using Split = Tensor::Split;

struct Shape {
  std::int64_t k_heads, v_heads, k_dim, v_dim;
  std::int64_t k() const { return k_heads * k_dim; }
  std::int64_t v() const { return v_heads * v_dim; }
  std::int64_t convolved() const { return 2 * k() + v(); }
};

Shape shape_of(const Block& block, std::int64_t tp) {
  const auto& shape = block.shape;
  return {shape.at("k_heads") / tp, shape.at("v_heads") / tp, shape.at("k_dim"), shape.at("v_dim")};
}

std::vector<Tensor> tensors(const Block& block, const ModelSpec& model) {
  const auto s = shape_of(block, 1);
  TensorList out;
  out.matrix("qkvz.weight", model.hidden, s.convolved() + s.v(), Split::heads);
  out.matrix("ba.weight", model.hidden, 2 * s.v_heads, Split::heads);
  out.depthwise("convolution.weight", s.convolved(), block.shape.at("kernel"), Split::heads);
  out.vector("dt_bias", s.v_heads, Split::heads);
  out.vector("a_log", s.v_heads, Split::heads);
  out.vector("head_norm.weight", s.v_dim, Split::none);
  out.matrix("out.weight", s.v(), model.hidden, Split::rows);
  return out.take();
}

Scan scan_of(const Block& block, const Shape& s, double a) {
  Scan scan{"gated_delta_rule", s.v_heads, s.k_dim, s.v_dim, block.shape.at("chunk"), 0.0, 0.0};
  const double heads = static_cast<double>(s.v_heads);
  scan.flops = heads * delta_rule_flops(scan.chunk, s.k_dim, s.v_dim);
  scan.bytes = heads * (2.0 * a * static_cast<double>(s.k_dim + s.v_dim) + 2.0 * 4.0);
  return scan;
}

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  const auto s = shape_of(block, context.tp);
  const double tokens = context.tokens(), a = context.recipe->activation_bytes * tokens;
  const double convolved = static_cast<double>(s.convolved()), v = static_cast<double>(s.v());
  const double heads = static_cast<double>(s.v_heads), qk = 2.0 * heads * static_cast<double>(s.k_dim);
  const double norm = context.norm_traffic;
  LinearMixer mixer;
  mixer.in = {{"linear_qkvz", tokens, model.hidden, s.convolved() + s.v() + 2 * s.v_heads}};
  mixer.before = {{"convolution", 2.0 * a * convolved, 3.0 * a * convolved},
                  {"qk_norm", norm * 2.0 * a * qk, norm * 3.0 * a * qk}};
  mixer.scan = scan_of(block, s, context.recipe->activation_bytes);
  mixer.after = {{"gated_norm", norm * 3.0 * a * v, norm * 5.0 * a * v}};
  mixer.out = {"attention_out", tokens, s.v(), model.hidden};
  mixer.saved = {{"convolution input", a * convolved},
                 {"q, k and v", a * (qk + v)},
                 {"decay and step", 2.0 * 4.0 * tokens * heads},
                 {"chunk inverses", a * heads * static_cast<double>(mixer.scan.chunk)},
                 {"scan output and gate", 2.0 * a * v},
                 {"attention output", context.recipe->gemm_input_bytes * tokens * v, true}};
  lower_linear_mixer(mixer, model, context, body);
}

double flops_per_token(const Block& block, const ModelSpec& model, const Span&) {
  return weight_flops(block, model) + scan_of(block, shape_of(block, 1), 0.0).flops;
}

std::optional<std::string> why_not_tensor(const Block& block, std::int64_t tp) {
  if (auto reason = why_not_divided(block.shape.at("k_heads"), "key heads of linear attention", tp)) return reason;
  return why_not_divided(block.shape.at("v_heads"), "value heads of linear attention", tp);
}

}  // namespace

extern const BlockKind gated_delta;
const BlockKind gated_delta = {"gated_delta", tensors, lower, flops_per_token, nullptr, why_not_tensor};

}  // namespace core::blocks

// Mamba-2 (state-space duality, arXiv 2405.21060): one projection to gate z, input x, the matrices B and C of `groups` groups
// and a step a head; a short convolution over x, B and C; the scan; RMSNorm times the gate; output projection. FLOPs of the
// chunked scan (section 6) for a chunk of C tokens, state N, head P, in full tiles: C B^T of each group 2 C^2 N; of each
// head its product with x 2 C^2 P, the chunk's state 2 C N P and the output of the state before 2 C N P. A token has
//   groups 2 C N + heads (2 C P + 4 N P).
// Saves what mamba_ssm's combined kernel keeps: the projection's output (the convolution is done again in backward), the
// scan's output, and the output projection's input.
#include "core/model/block_kind.h"
#include "core/model/linear_mixer.h"
#include "core/model/tensor_list.h"

namespace core::blocks {

namespace {

using Split = Tensor::Split;

struct Shape {
  std::int64_t heads, head_dim, groups, state;
  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t convolved() const { return inner() + 2 * groups * state; }
  std::int64_t projected() const { return inner() + convolved() + heads; }
};

Shape shape_of(const Block& block, std::int64_t tp) {
  const auto& shape = block.shape;
  return {shape.at("heads") / tp, shape.at("head_dim"), shape.at("groups") / tp, shape.at("state")};
}

std::vector<Tensor> tensors(const Block& block, const ModelSpec& model) {
  const auto s = shape_of(block, 1);
  const bool bias = block.shape.at("bias") != 0;
  TensorList out;
  out.matrix("in.weight", model.hidden, s.projected(), Split::heads);
  out.vector_if(bias, "in.bias", s.projected(), Split::heads);
  out.depthwise("convolution.weight", s.convolved(), block.shape.at("kernel"), Split::heads);
  out.vector_if(block.shape.at("convolution_bias") != 0, "convolution.bias", s.convolved(), Split::heads);
  out.vector("dt_bias", s.heads, Split::heads);
  out.vector("a_log", s.heads, Split::heads);
  out.vector("d", s.heads, Split::heads);
  out.vector("gated_norm.weight", s.inner(), Split::heads);
  out.matrix("out.weight", s.inner(), model.hidden, Split::rows);
  out.vector_if(bias, "out.bias", model.hidden, Split::none);
  return out.take();
}

Scan scan_of(const Block& block, const Shape& s, double a) {
  Scan scan{"state_space_scan", s.heads, s.state, s.head_dim, block.shape.at("chunk"), 0.0, 0.0};
  const double c = static_cast<double>(scan.chunk), n = static_cast<double>(s.state);
  const double p = static_cast<double>(s.head_dim), heads = static_cast<double>(s.heads);
  scan.flops = static_cast<double>(s.groups) * 2.0 * c * n + heads * (2.0 * c * p + 4.0 * n * p);
  scan.bytes = a * static_cast<double>(s.convolved() + s.inner()) + 4.0 * heads;
  return scan;
}

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  const auto s = shape_of(block, context.tp);
  const double tokens = context.tokens(), a = context.recipe->activation_bytes * tokens;
  const double convolved = static_cast<double>(s.convolved()), inner = static_cast<double>(s.inner());
  const double norm = context.norm_traffic;
  LinearMixer mixer;
  mixer.in = {{"mamba_in", tokens, model.hidden, s.projected()}};
  mixer.before = {{"convolution", 2.0 * a * convolved, (2.0 + 3.0) * a * convolved}};
  mixer.scan = scan_of(block, s, context.recipe->activation_bytes);
  mixer.after = {{"gated_norm", norm * 3.0 * a * inner, norm * 5.0 * a * inner}};
  mixer.out = {"mamba_out", tokens, s.inner(), model.hidden};
  mixer.saved = {{"z, x, B, C and step", a * static_cast<double>(s.projected())},
                 {"scan output", a * inner},
                 {"mamba output", context.recipe->gemm_input_bytes * tokens * inner, true}};
  lower_linear_mixer(mixer, model, context, body);
}

double flops_per_token(const Block& block, const ModelSpec& model, const Span&) {
  return weight_flops(block, model) + scan_of(block, shape_of(block, 1), 0.0).flops;
}

std::optional<std::string> why_not_tensor(const Block& block, std::int64_t tp) {
  if (auto reason = why_not_divided(block.shape.at("groups"), "groups of mamba", tp)) return reason;
  return why_not_divided(block.shape.at("heads"), "heads of mamba", tp);
}

}  // namespace

extern const BlockKind mamba2;
const BlockKind mamba2 = {"mamba2", tensors, lower, flops_per_token, nullptr, why_not_tensor};

}  // namespace core::blocks

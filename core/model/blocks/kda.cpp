// Kimi Delta Attention (arXiv 2510.26692, section 3): the gated delta rule with a decay for each channel of the key. Queries,
// keys and values of `heads` heads with a short convolution each; the decay and the output gate pass a projection to one
// head's width and up again; a step a head; RMSNorm of each head times the gate; output projection. Saves as
// gated_delta.cpp, with the decay of every channel in fp32, the latents of decay and gate, and two matrices of C numbers a
// token and head (flash-linear-attention keeps the scores beside the inverse).
#include "core/model/block_kind.h"
#include "core/model/linear_mixer.h"
#include "core/model/tensor_list.h"

namespace core::blocks {

namespace {

using Split = Tensor::Split;

std::vector<Tensor> tensors(const Block& block, const ModelSpec& model) {
  const auto h = model.hidden, heads = block.shape.at("heads"), dim = block.shape.at("head_dim"), width = heads * dim;
  TensorList out;
  for (const std::string name : {"q", "k", "v"}) {
    out.matrix(name + ".weight", h, width, Split::heads);
    out.depthwise(name + ".convolution", width, block.shape.at("kernel"), Split::heads);
  }
  out.vector("a_log", heads, Split::heads);
  out.matrix("decay_down.weight", h, dim, Split::none);
  out.matrix("decay_up.weight", dim, width, Split::heads);
  out.vector("dt_bias", width, Split::heads);
  out.matrix("step.weight", h, heads, Split::heads);
  out.matrix("gate_down.weight", h, dim, Split::none);
  out.matrix("gate_up.weight", dim, width, Split::heads);
  out.vector("head_norm.weight", dim, Split::none);
  out.matrix("out.weight", width, h, Split::rows);
  return out.take();
}

Scan scan_of(const Block& block, std::int64_t tp, double a) {
  const auto dim = block.shape.at("head_dim");
  Scan scan{"kimi_delta_rule", block.shape.at("heads") / tp, dim, dim, block.shape.at("chunk"), 0.0, 0.0};
  const double heads = static_cast<double>(scan.heads);
  scan.flops = heads * delta_rule_flops(scan.chunk, dim, dim);
  scan.bytes = heads * ((4.0 * a + 4.0) * static_cast<double>(dim) + 4.0);
  return scan;
}

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  const auto heads = block.shape.at("heads") / context.tp, dim = block.shape.at("head_dim"), width = heads * dim;
  const double tokens = context.tokens(), a = context.recipe->activation_bytes * tokens;
  const double g = context.recipe->gemm_input_bytes * tokens, w = static_cast<double>(width);
  const double norm = context.norm_traffic;
  LinearMixer mixer;
  mixer.in = {{"linear_qkv", tokens, model.hidden, 3 * width + heads},
              {"gates_down", tokens, model.hidden, 2 * dim}};
  mixer.gates = {{"gates_up", tokens, dim, 2 * width}};
  mixer.before = {{"convolution", 2.0 * a * 3.0 * w, 3.0 * a * 3.0 * w},
                  {"qk_norm", norm * 2.0 * a * 2.0 * w, norm * 3.0 * a * 2.0 * w},
                  {"decay", (a + 4.0 * tokens) * w, (2.0 * a + 4.0 * tokens) * w}};
  mixer.scan = scan_of(block, context.tp, context.recipe->activation_bytes);
  mixer.after = {{"gated_norm", norm * 3.0 * a * w, norm * 5.0 * a * w}};
  mixer.out = {"attention_out", tokens, width, model.hidden};
  mixer.saved = {{"convolution input", a * 3.0 * w},
                 {"q, k and v", a * 3.0 * w},
                 {"decay and step", 4.0 * tokens * (w + static_cast<double>(heads))},
                 {"latents of decay and gate", g * 2.0 * static_cast<double>(dim), true},
                 {"chunk scores and inverses", 2.0 * a * static_cast<double>(heads * mixer.scan.chunk)},
                 {"scan output and gate", 2.0 * a * w},
                 {"attention output", g * w, true}};
  lower_linear_mixer(mixer, model, context, body);
}

double flops_per_token(const Block& block, const ModelSpec& model, const Span&) {
  return weight_flops(block, model) + scan_of(block, 1, 0.0).flops;
}

std::optional<std::string> why_not_tensor(const Block& block, std::int64_t tp) {
  return why_not_divided(block.shape.at("heads"), "heads of linear attention", tp);
}

}  // namespace

extern const BlockKind kda;
const BlockKind kda = {"kda", tensors, lower, flops_per_token, nullptr, why_not_tensor};

}  // namespace core::blocks

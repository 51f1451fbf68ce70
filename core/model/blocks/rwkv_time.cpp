// Time mixing of RWKV-5, Eagle (arXiv 2404.05892, section 4): receptance, key, value and gate are projections of four
// mixtures of each token with the one before; wkv is linear attention with a decay for each channel and a state of head_dim x
// head_dim a head; a norm of each head times the gate; output projection. FLOPs of its chunked form (as gated linear
// attention, arXiv 2312.06635, section 4) for a chunk of C tokens and a head of d: scores and their values 2 C^2 d each, the
// state's output and its update 2 C d^2 each. A token and head has 4 C d + 4 d^2.
// Saves: the four mixtures, receptance, key, value and gate, the scan's output, the output projection's input.
#include "core/model/block_kind.h"
#include "core/model/linear_mixer.h"
#include "core/model/tensor_list.h"

namespace core::blocks {

namespace {

using Split = Tensor::Split;

std::vector<Tensor> tensors(const Block& block, const ModelSpec& model) {
  const auto h = model.hidden, width = block.shape.at("heads") * block.shape.at("head_dim");
  TensorList out;
  for (const std::string name : {"receptance", "key", "value", "gate"}) {
    out.vector(name + ".mix", h, Split::none);
    out.matrix(name + ".weight", h, width, Split::heads);
  }
  out.vector("decay", width, Split::heads);
  out.vector("first", width, Split::heads);
  out.vector("head_norm.weight", width, Split::heads);
  out.vector("head_norm.bias", width, Split::heads);
  out.matrix("out.weight", width, h, Split::rows);
  return out.take();
}

Scan scan_of(const Block& block, std::int64_t tp, double a) {
  const auto dim = block.shape.at("head_dim");
  Scan scan{"wkv", block.shape.at("heads") / tp, dim, dim, block.shape.at("chunk"), 0.0, 0.0};
  const double c = static_cast<double>(scan.chunk), d = static_cast<double>(dim);
  const double heads = static_cast<double>(scan.heads);
  scan.flops = heads * (4.0 * c * d + 4.0 * d * d);
  scan.bytes = heads * 4.0 * a * d;
  return scan;
}

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  const auto width = block.shape.at("heads") / context.tp * block.shape.at("head_dim");
  const double tokens = context.tokens(), a = context.recipe->activation_bytes * tokens;
  const double g = context.recipe->gemm_input_bytes * tokens;
  const double h = static_cast<double>(model.hidden), w = static_cast<double>(width);
  const double norm = context.norm_traffic;
  LinearMixer mixer;
  mixer.mixing = {{"token_shift", 5.0 * a * h, 6.0 * a * h}};
  for (const std::string name : {"receptance", "key", "value", "gate"}) {
    mixer.in.push_back({"time_" + name, tokens, model.hidden, width});
  }
  mixer.scan = scan_of(block, context.tp, context.recipe->activation_bytes);
  mixer.after = {{"gated_norm", norm * 3.0 * a * w, norm * 5.0 * a * w}};
  mixer.out = {"time_out", tokens, width, model.hidden};
  mixer.saved = {{"mixtures", 4.0 * g * h, true},
                 {"receptance, key, value and gate", 4.0 * a * w},
                 {"scan output", a * w},
                 {"time mixing output", g * w, true}};
  lower_linear_mixer(mixer, model, context, body);
}

double flops_per_token(const Block& block, const ModelSpec& model, const Span&) {
  return weight_flops(block, model) + scan_of(block, 1, 0.0).flops;
}

std::optional<std::string> why_not_tensor(const Block& block, std::int64_t tp) {
  return why_not_divided(block.shape.at("heads"), "heads of time mixing", tp);
}

}  // namespace

extern const BlockKind rwkv_time;
const BlockKind rwkv_time = {"rwkv_time", tensors, lower, flops_per_token, nullptr, why_not_tensor};

}  // namespace core::blocks

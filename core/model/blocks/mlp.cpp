// Feed-forward block: up [h, F], activation, down [F, h]; gated (SwiGLU, GeGLU) has two up projections whose product goes
// on. Saves (arXiv 2205.05198, section 4.1, MLP: 19 sbh at F = 4h): the input 2 sbh, the activation's input and output
// 2 sbF each (gated: gate, up and product), and the mask of dropout sbh.
#include <fmt/format.h>

#include <algorithm>

#include "core/graph/body_writer.h"
#include "core/model/block_kind.h"
#include "core/model/block_tensors.h"
#include "core/model/tensor_region.h"

namespace core::blocks {

namespace {

struct Shape {
  BodyWriter::Linear up, down;
  double elements;  // of the activation's output on one rank
  double ups;       // inputs of the activation: 2 gated, else 1
};

Shape shape_of(const Block& block, const ModelSpec& model, const BodyContext& context) {
  const auto ffn = block.shape.at("ffn") / context.tp;
  const bool gated = block.shape.at("gated") != 0;
  Shape s{{"mlp_up", context.tokens(), model.hidden, gated ? 2 * ffn : ffn},
          {"mlp_down", context.tokens(), ffn, model.hidden},
          context.tokens() * static_cast<double>(ffn),
          gated ? 2.0 : 1.0};
  s.up.repeated_by = s.down.repeated_by = modules::mlp;
  return s;
}

void write_forward(BodyWriter& writer, const BodyContext& context, const Shape& s, double whole) {
  const double a = context.recipe->activation_bytes;
  enter_tensor_region(writer, context, whole, modules::mlp);
  writer.linear_forward(s.up);
  writer.memory_bound("activation", Direction::forward, context.activation_traffic * a * s.elements * (s.ups + 1.0),
                      modules::activation | modules::mlp);
  writer.linear_forward(s.down);
  leave_tensor_region(writer, context, whole, modules::mlp);
}

// Beyond what is saved, at the most of three points: the gradient of the down projection's input, with the gathered one of its
// output; of the activation's inputs with that of its output, when the saved output is gone; of the block's input beside the
// gathered input, when the activation's inputs are gone too. The gradient of the residual stream is not among them.
double backward_transient(const BodyContext& context, const Shape& s, double whole) {
  const double a = context.recipe->activation_bytes, g = context.recipe->gemm_input_bytes;
  const double gathered = context.sp ? whole : 0.0;
  const double down = a * s.elements + gathered;
  const double activation = a * s.elements * (s.ups + 1.0) - g * s.elements;
  const double up = whole + gathered - g * s.elements;
  return std::max({down, activation, up});
}

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const auto s = shape_of(block, model, context);
  const double between = context.tokens_between_blocks() * static_cast<double>(model.hidden);
  const double a = context.recipe->activation_bytes, g = context.recipe->gemm_input_bytes;
  const double whole = a * context.tokens() * static_cast<double>(model.hidden);
  write_forward(writer, context, s, whole);
  write_residual(writer, model, context);

  write_dropout_backward(writer, model, context);
  write_output_gradients(writer, context, s.down, whole);
  writer.memory_bound("activation_backward", Direction::backward,
                      context.activation_traffic * a * s.elements * (2.0 * s.ups + 1.0));
  write_input_gradients(writer, context, {s.up}, whole);
  write_residual_backward(writer, model, context);

  if (context.gathers_input) writer.save_gemm_input("mlp input", g * between, modules::norm);
  writer.save(s.ups > 1.0 ? "gate and up" : "activation input", a * s.elements * s.ups, modules::mlp);
  writer.save_gemm_input("activation output", g * s.elements, modules::activation | modules::mlp);
  if (context.dropout_hidden) writer.save("mlp dropout mask", between);
  body.forward_transient = Bytes{whole};
  body.backward_transient = Bytes{backward_transient(context, s, whole) + a * between};
}

double flops_per_token(const Block& block, const ModelSpec& model, const Span&) { return weight_flops(block, model); }

std::optional<std::string> why_not_tensor(const Block& block, std::int64_t tp) {
  const auto ffn = block.shape.at("ffn");
  if (ffn % tp == 0) return std::nullopt;
  return fmt::format("ffn {} does not divide by tp={}", ffn, tp);
}

}  // namespace

extern const BlockKind mlp;
const BlockKind mlp = {"mlp", mlp_tensors, lower, flops_per_token, nullptr, why_not_tensor};

}  // namespace core::blocks

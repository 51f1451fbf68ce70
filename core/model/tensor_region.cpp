#include "core/model/tensor_region.h"

namespace core {

namespace {

double between(const ModelSpec& model, const BodyContext& context) {
  return context.tokens_between_blocks() * static_cast<double>(model.hidden);
}

}  // namespace

void write_residual(BodyWriter& writer, const ModelSpec& model, const BodyContext& context) {
  const double mask = context.dropout_hidden ? 1.0 : 0.0;
  writer.memory_bound("residual", Direction::forward,
                      (3.0 * context.recipe->activation_bytes + mask) * between(model, context));
}

void write_dropout_backward(BodyWriter& writer, const ModelSpec& model, const BodyContext& context) {
  if (!context.dropout_hidden) return;
  writer.memory_bound("dropout_backward", Direction::backward,
                      (2.0 * context.recipe->activation_bytes + 1.0) * between(model, context));
}

void write_residual_backward(BodyWriter& writer, const ModelSpec& model, const BodyContext& context) {
  writer.memory_bound("residual_backward", Direction::backward,
                      3.0 * context.recipe->activation_bytes * between(model, context));
}

void write_output_gradients(BodyWriter& writer, const BodyContext& context, const BodyWriter::Linear& out, double whole) {
  if (context.sp && context.reduces_output) {
    writer.tensor_collective_in_parts(OpKind::all_gather, "tp_gradient_all_gather", Direction::backward, whole,
                                      BodyWriter::Beside::next);
  }
  writer.linear_input_gradient(out);
  writer.linear_weight_gradient(out);
}

void write_input_gradients(BodyWriter& writer,
                           const BodyContext& context,
                           const std::vector<BodyWriter::Linear>& in,
                           double whole) {
  if (context.sp) {
    writer.tensor_collective(OpKind::all_gather, "tp_input_all_gather", Direction::backward, whole, true);
  }
  for (const auto& linear : in) writer.linear_input_gradient(linear);
  if (context.gathers_input) {
    const auto kind = context.sp ? OpKind::reduce_scatter : OpKind::all_reduce;
    const auto* name = context.sp ? "tp_gradient_reduce_scatter" : "tp_gradient_all_reduce";
    writer.tensor_collective(kind, name, Direction::backward, whole, true);
  }
  for (const auto& linear : in) writer.linear_weight_gradient(linear);
}

}  // namespace core

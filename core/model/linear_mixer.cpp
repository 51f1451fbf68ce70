#include "core/model/linear_mixer.h"

#include <algorithm>
#include <ranges>

#include "core/model/tensor_region.h"

namespace core {

namespace {

void write_passes(BodyWriter& writer, const std::vector<LinearMixer::Pass>& passes) {
  for (const auto& pass : passes) writer.memory_bound(pass.name, Direction::forward, pass.forward);
}

void write_passes_backward(BodyWriter& writer, const std::vector<LinearMixer::Pass>& passes) {
  for (const auto& pass : passes | std::views::reverse) {
    writer.memory_bound(pass.name + "_backward", Direction::backward, pass.backward);
  }
}

double width_of(const std::vector<BodyWriter::Linear>& linears) {
  double sum = 0.0;
  for (const auto& linear : linears) sum += static_cast<double>(linear.out);
  return sum;
}

// All projections are those of attention to a recipe.
LinearMixer as_attention(LinearMixer mixer) {
  for (auto* linears : {&mixer.in, &mixer.gates}) {
    for (auto& linear : *linears) linear.kind = LinearKind::attention;
  }
  mixer.out.kind = LinearKind::attention;
  return mixer;
}

void lower(const LinearMixer& mixer, const ModelSpec& model, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const double a = context.recipe->activation_bytes, h = static_cast<double>(model.hidden);
  const double whole = a * context.tokens() * h, between = context.tokens_between_blocks() * h;

  enter_tensor_region(writer, context, whole);
  write_passes(writer, mixer.mixing);
  for (const auto& linear : mixer.in) writer.linear_forward(linear);
  for (const auto& linear : mixer.gates) writer.linear_forward(linear);
  write_passes(writer, mixer.before);
  write_scan(writer, mixer.scan, context, Direction::forward);
  write_passes(writer, mixer.after);
  writer.linear_forward(mixer.out);
  leave_tensor_region(writer, context, whole);
  write_residual(writer, model, context);

  write_dropout_backward(writer, model, context);
  write_output_gradients(writer, context, mixer.out, whole);
  write_passes_backward(writer, mixer.after);
  write_scan(writer, mixer.scan, context, Direction::backward);
  write_passes_backward(writer, mixer.before);
  for (const auto& linear : mixer.gates) {
    writer.linear_input_gradient(linear);
    writer.linear_weight_gradient(linear);
  }
  write_input_gradients(writer, context, mixer.in, whole);
  write_passes_backward(writer, mixer.mixing);
  write_residual_backward(writer, model, context);

  writer.save_gemm_input("mixer input", context.recipe->gemm_input_bytes * between, modules::norm);
  for (const auto& tensor : mixer.saved) {
    if (tensor.gemm_input) {
      writer.save_gemm_input(tensor.name, tensor.bytes);
    } else {
      writer.save(tensor.name, tensor.bytes);
    }
  }
  if (context.dropout_hidden) writer.save("mixer dropout mask", between);
  // Backward has the gradients of all projections' outputs, and the states of the scan again.
  const double states = a * context.tokens() / static_cast<double>(mixer.scan.chunk) *
                        static_cast<double>(mixer.scan.heads * mixer.scan.k_dim * mixer.scan.v_dim);
  body.forward_transient = std::max(body.forward_transient, Bytes{whole + states});
  body.backward_transient =
      std::max(body.backward_transient, Bytes{a * context.tokens() * width_of(mixer.in) + states +
                                              (context.tp > 1 ? 2.0 : 1.0) * whole});
}

}  // namespace

void lower_linear_mixer(const LinearMixer& mixer, const ModelSpec& model, const BodyContext& context, Body& body) {
  lower(as_attention(mixer), model, context, body);
}

}  // namespace core

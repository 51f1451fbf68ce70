// Feed-forward block: up [h, F], activation, down [F, h]; gated (SwiGLU, GeGLU) has two up projections whose product goes
// on. Saves (arXiv 2205.05198, section 4.1, MLP: 19 sbh at F = 4h): the input 2 sbh, the activation's input and output
// 2 sbF each (gated: gate, up and product), and the mask of dropout sbh.
#include <algorithm>

#include "core/graph/body_writer.h"
#include "core/model/block_kind.h"
#include "core/model/block_tensors.h"

namespace core::blocks {

namespace {

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const double h = static_cast<double>(model.hidden);
  const auto ffn = block.shape.at("ffn") / context.tp;
  const bool gated = block.shape.at("gated") != 0;
  const double tokens = context.tokens(), between = context.tokens_between_blocks();
  const double a = context.recipe->activation_bytes, whole = a * tokens * h;
  const double f = static_cast<double>(ffn), ups = gated ? 2.0 : 1.0;
  const BodyWriter::Linear up{"mlp_up", tokens, model.hidden, gated ? 2 * ffn : ffn};
  const BodyWriter::Linear down{"mlp_down", tokens, ffn, model.hidden};

  enter_tensor_region(writer, context, whole);
  writer.linear_forward(up);
  writer.memory_bound("activation", Direction::forward, context.activation_traffic * a * tokens * f * (ups + 1.0), modules::activation);
  writer.linear_forward(down);
  leave_tensor_region(writer, context, whole);
  const double mask = context.dropout_hidden ? 1.0 : 0.0;
  writer.memory_bound("residual", Direction::forward, (3.0 * a + mask) * between * h);

  if (context.dropout_hidden) writer.memory_bound("dropout_backward", Direction::backward, (2.0 * a + 1.0) * between * h);
  if (context.sp && context.reduces_output) {
    writer.tensor_collective(OpKind::all_gather, "tp_gradient_all_gather", Direction::backward, whole);
  }
  writer.linear_input_gradient(down);
  writer.linear_weight_gradient(down);
  writer.memory_bound("activation_backward", Direction::backward,
                      context.activation_traffic * a * tokens * f * (2.0 * ups + 1.0));
  if (context.sp) {
    writer.tensor_collective(OpKind::all_gather, "tp_input_all_gather", Direction::backward, whole, true);
    writer.linear_input_gradient(up);
    if (context.gathers_input) {
      writer.tensor_collective(OpKind::reduce_scatter, "tp_gradient_reduce_scatter", Direction::backward, whole, true);
    }
  } else {
    writer.linear_input_gradient(up);
    if (context.gathers_input) {
      writer.tensor_collective(OpKind::all_reduce, "tp_gradient_all_reduce", Direction::backward, whole, true);
    }
  }
  writer.linear_weight_gradient(up);
  writer.memory_bound("residual_backward", Direction::backward, 3.0 * a * between * h);

  const double g = context.gemm_input_bytes();
  if (context.gathers_input) writer.save_gemm_input("mlp input", g * between * h, modules::norm);
  writer.save(gated ? "gate and up" : "activation input", a * tokens * f * ups);
  writer.save_gemm_input("activation output", g * tokens * f, modules::activation);
  if (context.dropout_hidden) writer.save("mlp dropout mask", between * h);
  body.forward_transient = std::max(body.forward_transient, Bytes{whole});
  body.backward_transient =
      std::max(body.backward_transient, Bytes{a * tokens * f * (ups + 1.0) + (context.tp > 1 ? 2.0 : 1.0) * whole});
}

}  // namespace

extern const BlockKind mlp;
const BlockKind mlp = {"mlp", mlp_tensors, lower};

}  // namespace core::blocks

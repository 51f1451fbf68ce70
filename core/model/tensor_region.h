#pragma once

#include <vector>

#include "core/graph/body_writer.h"
#include "core/model/model.h"

namespace core {

// What blocks share that begin with column-parallel and end with row-parallel linear layers (arXiv 2205.05198, figures 4
// and 5), beside enter_ and leave_tensor_region of core/graph/body_writer.h. `whole`: bytes of their input [b, s, h].

// The block's output, dropped out, is added to the residual stream.
void write_residual(BodyWriter& writer, const ModelSpec& model, const BodyContext& context);
void write_dropout_backward(BodyWriter& writer, const ModelSpec& model, const BodyContext& context);
void write_residual_backward(BodyWriter& writer, const ModelSpec& model, const BodyContext& context);

// Gradients of the row-parallel layer: the output's gradient is gathered where forward scattered it.
void write_output_gradients(BodyWriter& writer, const BodyContext& context, const BodyWriter::Linear& out, double whole);

// Gradients of column-parallel layers that read one input: the input is gathered again where it was kept divided, its
// gradient summed over the ranks beside the weight gradients.
void write_input_gradients(BodyWriter& writer,
                           const BodyContext& context,
                           const std::vector<BodyWriter::Linear>& in,
                           double whole);

}  // namespace core

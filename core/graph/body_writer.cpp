#include "core/graph/body_writer.h"

#include <utility>

#include "core/error.h"

namespace core {

namespace {

// Bytes of a stored GEMM operand of a format.
double width(Format format) {
  switch (format) {
    case Format::fp32:
    case Format::tf32: return 4.0;
    case Format::fp16:
    case Format::bf16: return 2.0;
    case Format::fp8: return 1.0;
  }
  CORE_ASSERT(false);
}

}  // namespace

Format BodyContext::gemm(Direction direction, bool weight) const {
  if (direction == Direction::forward) return format_of(recipe->gemm_forward);
  return format_of(weight ? recipe->gemm_weight_gradient : recipe->gemm_input_gradient);
}

void BodyWriter::gemm(const std::string& name,
                      Direction direction,
                      std::int64_t m,
                      std::int64_t n,
                      std::int64_t k,
                      Format format,
                      double bytes) {
  BodyOp op;
  op.spec.kind = OpKind::gemm;
  op.spec.name = name;
  op.spec.direction = direction;
  op.spec.format = format;
  op.spec.m = m, op.spec.n = n, op.spec.k = k;
  op.spec.flops = Flops{2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k)};
  op.spec.bytes = Bytes{bytes};
  list(direction).push_back(std::move(op));
}

void BodyWriter::cast(const std::string& name, Direction direction, double elements, Format format) {
  if (format != Format::fp8 || context_.recipe->cast_bytes_per_gemm_element <= 0.0) return;
  memory_bound(name, direction, elements * context_.recipe->cast_bytes_per_gemm_element);
}

void BodyWriter::linear_forward(const Linear& l) {
  const auto format = l.output_layer ? format_of(context_.recipe->gemm_output) : context_.gemm(Direction::forward, false);
  const double t = l.tokens, in = static_cast<double>(l.in), out = static_cast<double>(l.out);
  cast(l.name + "_cast", Direction::forward, t * in, format);
  gemm(l.name, Direction::forward, static_cast<std::int64_t>(t), l.out, l.in, format,
       width(format) * (t * in + in * out) + context_.recipe->activation_bytes * t * out);
}

void BodyWriter::linear_input_gradient(const Linear& l) {
  const auto format =
      l.output_layer ? format_of(context_.recipe->gemm_output) : context_.gemm(Direction::backward, false);
  const double t = l.tokens, in = static_cast<double>(l.in), out = static_cast<double>(l.out);
  cast(l.name + "_gradient_cast", Direction::backward, t * out, format);
  gemm(l.name + "_input_gradient", Direction::backward, static_cast<std::int64_t>(t), l.in, l.out, format,
       width(format) * (t * out + in * out) + context_.recipe->activation_bytes * t * in);
}

void BodyWriter::linear_weight_gradient(const Linear& l) {
  const auto format =
      l.output_layer ? format_of(context_.recipe->gemm_output) : context_.gemm(Direction::backward, true);
  const double t = l.tokens, in = static_cast<double>(l.in), out = static_cast<double>(l.out);
  // The gradient is added to the accumulated one: read and written in its own format.
  gemm(l.name + "_weight_gradient", Direction::backward, l.out, l.in, static_cast<std::int64_t>(t), format,
       width(format) * (t * out + t * in) + 2.0 * context_.recipe->gradient_bytes * in * out);
}

void BodyWriter::memory_bound(std::string name, Direction direction, double bytes) {
  BodyOp op;
  op.spec.kind = OpKind::memory_bound;
  op.spec.name = std::move(name);
  op.spec.direction = direction;
  op.spec.format = format_of(context_.recipe->compute_format);
  op.spec.bytes = Bytes{bytes};
  list(direction).push_back(std::move(op));
}

void BodyWriter::tensor_collective(
    OpKind kind, std::string name, Direction direction, double bytes, bool overlaps_next) {
  if (context_.tp == 1) return;
  BodyOp op;
  op.spec.kind = kind;
  op.spec.name = std::move(name);
  op.spec.direction = direction;
  op.spec.format = format_of(context_.recipe->compute_format);
  op.spec.bytes = Bytes{bytes};
  op.scope = Scope::tensor;
  op.overlaps_next = overlaps_next;
  list(direction).push_back(std::move(op));
}

void BodyWriter::attention(const OpSpec& spec) {
  BodyOp op;
  op.spec = spec;
  list(spec.direction).push_back(std::move(op));
}

void BodyWriter::save(std::string name, double bytes, SavedTensor::DroppedBy dropped_by) {
  if (bytes > 0.0) body_.saved.push_back({std::move(name), Bytes{bytes}, dropped_by});
}

void BodyWriter::parameters(double elements, double gemm_elements) {
  body_.parameters += elements;
  body_.gemm_parameters += gemm_elements;
}

void enter_tensor_region(BodyWriter& writer, const BodyContext& context, double bytes) {
  if (context.sp && context.gathers_input) {
    writer.tensor_collective(OpKind::all_gather, "tp_all_gather", Direction::forward, bytes);
  }
}

void leave_tensor_region(BodyWriter& writer, const BodyContext& context, double bytes) {
  if (!context.reduces_output) return;
  if (context.sp) {
    writer.tensor_collective(OpKind::reduce_scatter, "tp_reduce_scatter", Direction::forward, bytes);
  } else {
    writer.tensor_collective(OpKind::all_reduce, "tp_all_reduce", Direction::forward, bytes);
  }
}

}  // namespace core

#include "core/graph/body_writer.h"

#include <algorithm>
#include <cmath>
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
    case Format::fp4: return 0.5;
  }
  CORE_ASSERT(false);
}

}  // namespace

Format BodyContext::gemm(Direction direction, bool weight) const {
  if (direction == Direction::forward) return format_of(recipe->gemm_forward);
  return format_of(weight ? recipe->gemm_weight_gradient : recipe->gemm_input_gradient);
}

BodyOp& BodyWriter::append(OpSpec spec, Modules repeated_by) {
  BodyOp op;
  const bool forward = spec.direction == Direction::forward;
  op.spec = std::move(spec);
  op.repeated_by = forward ? repeated_by : 0;
  auto& list = forward ? body_.forward : body_.backward;
  list.push_back(std::move(op));
  return list.back();
}

BodyOp& BodyWriter::gemm(const std::string& name,
                         Direction direction,
                         std::int64_t m,
                         std::int64_t n,
                         std::int64_t k,
                         Format format,
                         double bytes,
                         const Linear& l) {
  OpSpec spec;
  spec.kind = OpKind::gemm;
  spec.name = name;
  spec.direction = direction;
  spec.format = format;
  spec.m = m, spec.n = n, spec.k = k;
  spec.batch = std::max<std::int64_t>(1, l.experts);
  spec.grouped = l.experts > 0;
  spec.flops = Flops{2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                     static_cast<double>(spec.batch)};
  spec.bytes = Bytes{bytes * static_cast<double>(spec.batch)};
  return append(std::move(spec), l.repeated_by);
}

void BodyWriter::cast(const std::string& name, Direction direction, double elements, Format format, const Linear& l) {
  if (format != Format::fp8 || context_.recipe->cast_bytes_per_gemm_element <= 0.0) return;
  memory_bound(name, direction,
               static_cast<double>(std::max<std::int64_t>(1, l.experts)) * elements *
                   context_.recipe->cast_bytes_per_gemm_element,
               l.repeated_by);
}

void BodyWriter::linear_forward(const Linear& l) {
  const auto format = l.output_layer ? format_of(context_.recipe->gemm_output) : context_.gemm(Direction::forward, false);
  const double t = l.tokens, in = static_cast<double>(l.in), out = static_cast<double>(l.out);
  cast(l.name + "_cast", Direction::forward, t * in, format, l);
  gemm(l.name, Direction::forward, rows(l), l.out, l.in, format,
       width(format) * (t * in + in * out) + context_.recipe->activation_bytes * t * out, l);
}

void BodyWriter::linear_input_gradient(const Linear& l) {
  const auto format =
      l.output_layer ? format_of(context_.recipe->gemm_output) : context_.gemm(Direction::backward, false);
  const double t = l.tokens, in = static_cast<double>(l.in), out = static_cast<double>(l.out);
  cast(l.name + "_gradient_cast", Direction::backward, t * out, format, l);
  gemm(l.name + "_input_gradient", Direction::backward, rows(l), l.in, l.out, format,
       width(format) * (t * out + in * out) + context_.recipe->activation_bytes * t * in, l);
}

void BodyWriter::linear_weight_gradient(const Linear& l) {
  const auto format =
      l.output_layer ? format_of(context_.recipe->gemm_output) : context_.gemm(Direction::backward, true);
  const double t = l.tokens, in = static_cast<double>(l.in), out = static_cast<double>(l.out);
  // The gradient is added to the accumulated one: read and written in its own format.
  auto& op = gemm(l.name + "_weight_gradient", Direction::backward, l.out, l.in, rows(l), format,
                  width(format) * (t * out + t * in) + 2.0 * context_.recipe->gradient_bytes * in * out, l);
  op.weight_gradient = true;
  body_.held_gradients += Bytes{width(format) * t * out * static_cast<double>(op.spec.batch)};
}

std::int64_t BodyWriter::rows(const Linear& l) { return std::max<std::int64_t>(1, std::llround(l.tokens)); }

void BodyWriter::memory_bound(std::string name, Direction direction, double bytes, Modules repeated_by) {
  OpSpec spec;
  spec.kind = OpKind::memory_bound;
  spec.name = std::move(name);
  spec.direction = direction;
  spec.format = format_of(context_.recipe->compute_format);
  spec.bytes = Bytes{bytes};
  append(std::move(spec), repeated_by);
}

void BodyWriter::collective(Scope scope, OpKind kind, std::string name, Direction direction, double bytes,
                            bool overlaps_next, Modules repeated_by) {
  if (ranks_of(scope, context_) == 1) return;
  OpSpec spec;
  spec.kind = kind;
  spec.name = std::move(name);
  spec.direction = direction;
  spec.format = format_of(context_.recipe->compute_format);
  spec.bytes = Bytes{bytes};
  auto& op = append(std::move(spec), repeated_by);
  op.scope = scope;
  op.overlaps_next = overlaps_next;
}

void BodyWriter::tensor_collective(
    OpKind kind, std::string name, Direction direction, double bytes, bool overlaps_next) {
  collective(Scope::tensor, kind, std::move(name), direction, bytes, overlaps_next);
}

void BodyWriter::expert_all_to_all(std::string name, Direction direction, double bytes, std::int64_t copies,
                                   std::int64_t domains, bool overlaps_next, Modules repeated_by) {
  if (ranks_of(Scope::expert, context_) == 1) return;
  OpSpec spec;
  spec.kind = OpKind::all_to_all;
  spec.name = std::move(name);
  spec.direction = direction;
  spec.format = format_of(context_.recipe->compute_format);
  spec.bytes = Bytes{bytes};
  spec.n = copies;
  spec.k = domains;
  auto& op = append(std::move(spec), repeated_by);
  op.scope = Scope::expert;
  op.overlaps_next = overlaps_next;
}

void BodyWriter::op(OpSpec spec, Modules repeated_by) { append(std::move(spec), repeated_by); }

void BodyWriter::save(std::string name, double bytes, Modules dropped_by) {
  if (bytes > 0.0) body_.saved.push_back({std::move(name), Bytes{bytes}, dropped_by, false});
}

void BodyWriter::save_gemm_input(std::string name, double bytes, Modules dropped_by) {
  if (bytes > 0.0) body_.saved.push_back({std::move(name), Bytes{bytes}, dropped_by, true});
}

std::int64_t ranks_of(Scope scope, const BodyContext& context) {
  switch (scope) {
    case Scope::none: return 1;
    case Scope::tensor: return context.tp;
    case Scope::context: return context.cp;
    case Scope::expert: return context.ep;
    case Scope::expert_tensor: return context.etp;
  }
  CORE_ASSERT(false);
}

void enter_tensor_region(BodyWriter& writer, const BodyContext& context, double bytes, Modules repeated_by) {
  if (!context.sp || !context.gathers_input) return;
  writer.collective(Scope::tensor, OpKind::all_gather, "tp_all_gather", Direction::forward, bytes, false, repeated_by);
}

void leave_tensor_region(BodyWriter& writer, const BodyContext& context, double bytes, Modules repeated_by) {
  if (!context.reduces_output) return;
  const auto kind = context.sp ? OpKind::reduce_scatter : OpKind::all_reduce;
  const auto* name = context.sp ? "tp_reduce_scatter" : "tp_all_reduce";
  writer.collective(Scope::tensor, kind, name, Direction::forward, bytes, false, repeated_by);
}

}  // namespace core

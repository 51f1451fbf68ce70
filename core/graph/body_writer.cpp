#include "core/graph/body_writer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"

namespace core {

Format BodyContext::gemm(Direction direction, bool weight) const {
  const auto role = direction == Direction::forward ? GemmRole::forward
                    : weight                        ? GemmRole::weight_gradient
                                                    : GemmRole::input_gradient;
  return recipe->linear(LinearKind::linear).of(role).rate;
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

const LinearRecipe& BodyWriter::recipe_of(const Linear& l) const {
  if (l.output_layer) return context_.recipe->linear(LinearKind::output);
  return context_.recipe->linear(l.experts > 0 ? LinearKind::expert : l.kind);
}

// The passes that stand before a GEMM. Weights that are made once a step are made again where they were gathered: shards are
// what is kept.
void BodyWriter::passes(const Linear& l, CastPass::When when) {
  if (!recipe_of(l).quantised) return;
  const auto direction = when == CastPass::When::forward ? Direction::forward : Direction::backward;
  const bool again = context_.gathered_weights && when != CastPass::When::weight_gradient;
  for (const CastPass& each : context_.recipe->passes) {
    if (each.when == when || (again && each.when == CastPass::When::step)) pass(l, each, direction);
  }
}

void BodyWriter::pass(const Linear& l, const CastPass& pass, Direction direction) {
  const double t = l.tokens, in = static_cast<double>(l.in), out = static_cast<double>(l.out);
  const double elements = pass.tensor == CastPass::Tensor::input    ? t * in
                          : pass.tensor == CastPass::Tensor::weight ? in * out
                                                                    : t * out;
  auto& list = direction == Direction::forward ? body_.forward : body_.backward;
  // A collective that runs beside the GEMM is launched right before it: the passes come first.
  std::size_t place = list.size();
  while (place > 0 && list[place - 1].overlaps_next) --place;
  memory_bound(l.name + "_" + pass.name, direction,
               static_cast<double>(std::max<std::int64_t>(1, l.experts)) * elements * pass.bytes, l.repeated_by);
  list.back().weight_gradient = pass.when == CastPass::When::weight_gradient;
  std::rotate(list.begin() + static_cast<std::ptrdiff_t>(place), list.end() - 1, list.end());
}

double BodyWriter::forward_bytes(const Linear& l, const GemmRecipe& g) const {
  const double t = l.tokens, in = static_cast<double>(l.in), out = static_cast<double>(l.out);
  return g.left.stored() * t * in + g.right.stored() * in * out + context_.recipe->activation_bytes * t * out;
}

double BodyWriter::input_gradient_bytes(const Linear& l, const GemmRecipe& g) const {
  const double t = l.tokens, in = static_cast<double>(l.in), out = static_cast<double>(l.out);
  return g.left.stored() * t * out + g.right.stored() * in * out + context_.recipe->activation_bytes * t * in;
}

// The gradient is added to a sum: read and written in the format of the sum.
double BodyWriter::weight_gradient_bytes(const Linear& l, const GemmRecipe& g, double sum_bytes) const {
  const double t = l.tokens, in = static_cast<double>(l.in), out = static_cast<double>(l.out);
  return g.left.stored() * t * out + g.right.stored() * t * in + 2.0 * sum_bytes * in * out;
}

void BodyWriter::linear_forward(const Linear& l) {
  const auto& g = recipe_of(l).of(GemmRole::forward);
  passes(l, CastPass::When::forward);
  gemm(l.name, Direction::forward, rows(l), l.out, l.in, g.rate, forward_bytes(l, g), l);
}

void BodyWriter::linear_forward_again(const Linear& l) {
  const auto& g = recipe_of(l).of(GemmRole::forward);
  gemm(l.name, Direction::backward, rows(l), l.out, l.in, g.rate, forward_bytes(l, g), l).recompute = true;
}

void BodyWriter::linear_input_gradient(const Linear& l) {
  const auto& g = recipe_of(l).of(GemmRole::input_gradient);
  passes(l, CastPass::When::input_gradient);
  gemm(l.name + "_input_gradient", Direction::backward, rows(l), l.in, l.out, g.rate, input_gradient_bytes(l, g), l);
}

void BodyWriter::linear_weight_gradient(const Linear& l) {
  const auto& g = recipe_of(l).of(GemmRole::weight_gradient);
  passes(l, CastPass::When::weight_gradient);
  auto& op = gemm(l.name + "_weight_gradient", Direction::backward, l.out, l.in, rows(l), g.rate,
                  weight_gradient_bytes(l, g, context_.recipe->gradient_bytes), l);
  op.weight_gradient = true;
  body_.held_gradients +=
      Bytes{g.left.stored() * l.tokens * static_cast<double>(l.out) * static_cast<double>(op.spec.batch)};
}

void BodyWriter::linear_gradients_in_forward(const Linear& l, double sum_bytes) {
  const auto& input = recipe_of(l).of(GemmRole::input_gradient);
  const auto& weight = recipe_of(l).of(GemmRole::weight_gradient);
  gemm(l.name + "_input_gradient", Direction::forward, rows(l), l.in, l.out, input.rate, input_gradient_bytes(l, input), l);
  gemm(l.name + "_weight_gradient", Direction::forward, l.out, l.in, rows(l), weight.rate,
       weight_gradient_bytes(l, weight, sum_bytes), l);
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

void BodyWriter::tensor_collective_in_parts(OpKind kind, const std::string& name, Direction direction, double bytes,
                                            Beside gemm, Modules repeated_by) {
  if (!context_.overlap_tensor || context_.tp == 1) {
    collective(Scope::tensor, kind, name, direction, bytes, false, repeated_by);
    return;
  }
  // In tp parts, of which one has no part of the GEMM to run beside.
  const double alone = bytes / static_cast<double>(context_.tp);
  auto& list = direction == Direction::forward ? body_.forward : body_.backward;
  if (gemm == Beside::next) {
    collective(Scope::tensor, kind, name, direction, alone, false, repeated_by);
    collective(Scope::tensor, kind, name + "_parts", direction, bytes - alone, true, repeated_by);
    return;
  }
  collective(Scope::tensor, kind, name + "_parts", direction, bytes - alone, true, repeated_by);
  if (list.size() > 1) std::swap(list[list.size() - 1], list[list.size() - 2]);
  collective(Scope::tensor, kind, name, direction, alone, false, repeated_by);
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
  spec.one_sided = context_.dispatch == Dispatch::one_sided;
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
  writer.tensor_collective_in_parts(OpKind::all_gather, "tp_all_gather", Direction::forward, bytes,
                                    BodyWriter::Beside::next, repeated_by);
}

void leave_tensor_region(BodyWriter& writer, const BodyContext& context, double bytes, Modules repeated_by) {
  if (!context.reduces_output) return;
  const auto kind = context.sp ? OpKind::reduce_scatter : OpKind::all_reduce;
  const auto* name = context.sp ? "tp_reduce_scatter" : "tp_all_reduce";
  if (!context.sp) return writer.collective(Scope::tensor, kind, name, Direction::forward, bytes, false, repeated_by);
  writer.tensor_collective_in_parts(kind, name, Direction::forward, bytes, BodyWriter::Beside::last, repeated_by);
}

}  // namespace core

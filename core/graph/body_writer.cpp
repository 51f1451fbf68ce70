#include "core/graph/body_writer.h"

#include <algorithm>
#include <cmath>
#include <optional>
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
  gather_at_once();
  return push(std::move(spec), repeated_by);
}

BodyOp& BodyWriter::push(OpSpec spec, Modules repeated_by) {
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
                         std::optional<double> fixed_bytes,
                         const Linear& l) {
  OpSpec spec;
  spec.kind = OpKind::gemm;
  spec.name = name;
  spec.direction = direction;
  spec.format = format;
  spec.m = m, spec.n = n, spec.k = k;
  spec.batch = std::max<std::int64_t>(1, l.experts);
  spec.grouped = l.experts > 0;
  spec.captured = spec.grouped && context_.graphs == CudaGraphs::layers;
  spec.flops = Flops{2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                     static_cast<double>(spec.batch)};
  spec.bytes = Bytes{bytes * static_cast<double>(spec.batch)};
  last_fixed_bytes_ = spec.grouped || l.output_layer ? std::nullopt : fixed_bytes;
  if (gather_ && gather_->direction == direction && last_fixed_bytes_ && m >= context_.tp) {
    return gemm_beside_gather(spec, l.repeated_by);
  }
  return append(std::move(spec), l.repeated_by);
}

namespace {

// Part `i` of `parts` of a GEMM's rows; all parts together have all of them.
OpSpec part_of(const OpSpec& whole, std::int64_t i, std::int64_t parts, double fixed_bytes) {
  auto part = whole;
  part.m = whole.m / parts + (i < whole.m % parts ? 1 : 0);
  const double share = static_cast<double>(part.m) / static_cast<double>(whole.m);
  part.flops = whole.flops * share;
  part.bytes = Bytes{fixed_bytes + (whole.bytes.value - fixed_bytes) * share};
  return part;
}

}  // namespace

// A gather that found no GEMM to run beside.
void BodyWriter::gather_at_once() {
  if (!gather_) return;
  const auto g = *std::exchange(gather_, std::nullopt);
  push_collective(Scope::tensor, collective_spec(g.kind, g.name, g.direction, g.bytes), false, g.repeated_by);
}

BodyOp& BodyWriter::gemm_beside_gather(const OpSpec& whole, Modules repeated_by) {
  const auto g = *std::exchange(gather_, std::nullopt);
  const auto parts = context_.tp;
  auto sent = collective_spec(OpKind::send_receive, g.name + "_part", g.direction, g.bytes / static_cast<double>(parts));
  sent.beside = context_.tensor_parts.gather;
  BodyOp* last = nullptr;
  for (std::int64_t i = 0; i < parts; ++i) {
    auto part = part_of(whole, i, parts, *last_fixed_bytes_);
    if (i + 1 < parts) {
      push_collective(Scope::tensor, sent, true, g.repeated_by);
      part.beside = sent.beside;
    }
    last = &push(std::move(part), repeated_by);
  }
  return *last;
}

void BodyWriter::scatter_beside_gemm(OpKind kind, const std::string& name, Direction direction, double bytes,
                                     Modules repeated_by) {
  auto& list = direction == Direction::forward ? body_.forward : body_.backward;
  const auto tp = context_.tp;
  const auto by = context_.tensor_parts.scatter;
  const bool sends = by == Mover::copy_engine;
  const auto wanted = sends || context_.tensor_parts.scatter_parts == 0 ? tp : context_.tensor_parts.scatter_parts;
  const bool after_gemm = !list.empty() && list.back().spec.kind == OpKind::gemm && last_fixed_bytes_;
  if (!after_gemm || list.back().spec.m < wanted) {
    push_collective(Scope::tensor, collective_spec(kind, name, direction, bytes), false, repeated_by);
    return;
  }
  const auto gemm = list.back();
  list.pop_back();
  for (std::int64_t i = 0; i < wanted; ++i) {
    auto part = part_of(gemm.spec, i, wanted, *last_fixed_bytes_);
    const double share = static_cast<double>(part.m) / static_cast<double>(gemm.spec.m);
    if (i > 0) part.beside = by;
    push(std::move(part), gemm.repeated_by);
    const bool last = i + 1 == wanted;
    if (last && sends) break;
    auto moved = collective_spec(sends ? OpKind::send_receive : kind, name + "_part", direction, bytes * share);
    if (!last) moved.beside = by;
    push_collective(Scope::tensor, std::move(moved), !last, repeated_by);
  }
  // Of the rank's own rows, the parts of all ranks are read and their sum is written.
  if (sends) memory_bound(name + "_sum", direction, bytes * (1.0 + 1.0 / static_cast<double>(tp)), repeated_by);
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
  OpSpec spec;
  spec.kind = OpKind::memory_bound;
  spec.name = l.name + "_" + pass.name;
  spec.direction = direction;
  spec.format = format_of(context_.recipe->compute_format);
  spec.bytes = Bytes{static_cast<double>(std::max<std::int64_t>(1, l.experts)) * elements * pass.bytes};
  push(std::move(spec), l.repeated_by);
  list.back().weight_gradient = pass.when == CastPass::When::weight_gradient;
  std::rotate(list.begin() + static_cast<std::ptrdiff_t>(place), list.end() - 1, list.end());
}

// What each part of the rows of a GEMM reads anew.
double BodyWriter::weight_bytes(const Linear& l, const GemmRecipe& g) {
  return g.right.stored() * static_cast<double>(l.in) * static_cast<double>(l.out);
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
  gemm(l.name, Direction::forward, rows(l), l.out, l.in, g.rate, forward_bytes(l, g), weight_bytes(l, g), l);
}

void BodyWriter::linear_forward_again(const Linear& l) {
  const auto& g = recipe_of(l).of(GemmRole::forward);
  gemm(l.name, Direction::backward, rows(l), l.out, l.in, g.rate, forward_bytes(l, g), std::nullopt, l).recompute = true;
}

void BodyWriter::linear_input_gradient(const Linear& l) {
  const auto& g = recipe_of(l).of(GemmRole::input_gradient);
  passes(l, CastPass::When::input_gradient);
  gemm(l.name + "_input_gradient", Direction::backward, rows(l), l.in, l.out, g.rate, input_gradient_bytes(l, g),
       weight_bytes(l, g), l);
}

void BodyWriter::linear_weight_gradient(const Linear& l) {
  const auto& recipe = *context_.recipe;
  const auto& g = recipe_of(l).of(GemmRole::weight_gradient);
  passes(l, CastPass::When::weight_gradient);
  // The gradient is written once, in the weight's format, where another kernel adds it to the sum.
  const double read_and_written = context_.sums_gradients_apart ? recipe.weight_bytes / 2.0 : recipe.gradient_bytes;
  auto& op = gemm(l.name + "_weight_gradient", Direction::backward, l.out, l.in, rows(l), g.rate,
                  weight_gradient_bytes(l, g, read_and_written), std::nullopt, l);
  op.weight_gradient = true;
  const double experts = static_cast<double>(op.spec.batch);
  body_.held_gradients += Bytes{g.left.stored() * l.tokens * static_cast<double>(l.out) * experts};
  if (!context_.sums_gradients_apart) return;
  const double elements = experts * static_cast<double>(l.in) * static_cast<double>(l.out);
  memory_bound(l.name + "_gradient_sum", Direction::backward, (recipe.weight_bytes + 2.0 * recipe.gradient_bytes) * elements);
  body_.backward.back().weight_gradient = true;
}

void BodyWriter::linear_gradients_in_forward(const Linear& l, double sum_bytes) {
  const auto& input = recipe_of(l).of(GemmRole::input_gradient);
  const auto& weight = recipe_of(l).of(GemmRole::weight_gradient);
  gemm(l.name + "_input_gradient", Direction::forward, rows(l), l.in, l.out, input.rate, input_gradient_bytes(l, input),
       std::nullopt, l);
  gemm(l.name + "_weight_gradient", Direction::forward, l.out, l.in, rows(l), weight.rate,
       weight_gradient_bytes(l, weight, sum_bytes), std::nullopt, l);
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
  gather_at_once();
  push_collective(scope, collective_spec(kind, std::move(name), direction, bytes), overlaps_next, repeated_by);
}

OpSpec BodyWriter::collective_spec(OpKind kind, std::string name, Direction direction, double bytes) const {
  OpSpec spec;
  spec.kind = kind;
  spec.name = std::move(name);
  spec.direction = direction;
  spec.format = format_of(context_.recipe->compute_format);
  spec.bytes = Bytes{bytes};
  return spec;
}

void BodyWriter::push_collective(Scope scope, OpSpec spec, bool overlaps_next, Modules repeated_by) {
  auto& op = push(std::move(spec), repeated_by);
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
  if (gemm == Beside::last) return scatter_beside_gemm(kind, name, direction, bytes, repeated_by);
  gather_at_once();
  gather_ = Gather{kind, name, direction, bytes, repeated_by};
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

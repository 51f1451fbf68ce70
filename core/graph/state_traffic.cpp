#include "core/graph/state_traffic.h"

#include "core/error.h"

namespace core {

namespace {

ShardSizes sizes_of(int zero, const ShardGroups& groups, std::int64_t replicas, const Offload& offload) {
  ShardSizes s;
  s.replicas = replicas;
  if (zero >= 1) s.optimizer = groups.optimizer.value_or(replicas);
  if (zero >= 2) s.gradients = groups.gradients.value_or(replicas);
  if (zero >= 3) s.parameters = groups.parameters.value_or(replicas);
  s.gradients_on_host = offload.optimizer && zero >= 2 && s.gradients == replicas;
  return s;
}

double part(double bytes, std::int64_t ranks) { return bytes / static_cast<double>(ranks); }

}  // namespace

GroupShape shape_of(Scope scope, const ParallelPlan& plan) {
  switch (scope) {
    case Scope::none: return {1, 1};
    case Scope::tensor: return {1, plan.tp};
    case Scope::context: return {plan.tp, plan.cp};
    case Scope::expert: return {plan.etp, plan.ep};
    case Scope::expert_tensor: return {1, plan.etp};
  }
  CORE_ASSERT(false);
}

OpSpec spec_of(const StateOp& op, std::string_view format, std::int16_t group) {
  OpSpec spec;
  spec.kind = op.kind;
  spec.name = op.name;
  spec.format = format_of(format);
  spec.bytes = Bytes{op.bytes};
  spec.k = op.levels;
  spec.group = is_collective(op.kind) ? group : std::int16_t{-1};
  return spec;
}

void StateOps::add(StateOp op) {
  if ((is_collective(op.kind) && op.group.size == 1) || op.bytes <= 0.0) return;
  if (op.kind == OpKind::all_gather || op.kind == OpKind::reduce_scatter) op.levels = levels_;
  CORE_ASSERT(count_ < ops_.size());
  ops_[count_++] = op;
}

StateTraffic::StateTraffic(const ParallelPlan& plan, const Recipe& recipe)
    : dense_(sizes_of(plan.zero, plan.shard, plan.replicas(), plan.offload)),
      experts_(sizes_of(plan.zero_of_experts(), plan.expert_zero ? plan.expert_shard : ShardGroups{},
                        plan.expert_replicas(), plan.offload)),
      stride_(plan.tp),
      expert_stride_(plan.ep * plan.etp),
      gather_bytes_(recipe.parameter_gather_bytes),
      reduce_bytes_(recipe.gradient_reduce_bytes),
      weight_bytes_(recipe.weight_bytes),
      gradient_bytes_(recipe.gradient_bytes),
      matrix_bytes_(recipe.matrix_gather_bytes),
      offload_(plan.offload),
      collectives_(plan.collectives),
      overlap_parameters_(plan.overlap_parameters) {}

std::array<StateTraffic::Class, 2> StateTraffic::classes(const StateElements& n) const {
  return {Class{dense_, stride_, n.dense, false}, Class{experts_, expert_stride_, n.experts, true}};
}

namespace {

StateOp to_host(std::string_view name, double bytes) { return {OpKind::copy_to_host, name, bytes, {}}; }
StateOp to_device(std::string_view name, double bytes) { return {OpKind::copy_to_device, name, bytes, {}}; }

}  // namespace

StateOps StateTraffic::unit_gather(const StateElements& n) const {
  StateOps ops(collectives_);
  for (const auto& c : classes(n)) {
    if (offload_.weights) ops.add(to_device("weights_to_device", part(weight_bytes_ * c.elements, c.sizes.parameters)));
    ops.add({OpKind::all_gather, c.is_experts ? "expert_parameter_all_gather" : "parameter_all_gather",
             gather_bytes_ * c.elements, {c.stride, c.sizes.parameters}});
  }
  return ops;
}

StateOp StateTraffic::updated_gather_of(const Class& c) const {
  const auto p = c.sizes.parameters;
  return {OpKind::all_gather, c.is_experts ? "expert_parameter_all_gather" : "parameter_all_gather",
          part(gather_bytes_ * c.elements, p), {c.stride * p, c.sizes.optimizer / p}};
}

StateOps StateTraffic::updated_gather(const StateElements& n) const {
  StateOps ops(collectives_);
  for (const auto& c : classes(n)) ops.add(updated_gather_of(c));
  return ops;
}

StateOps StateTraffic::matrix_gather(const StateElements& n, const StateElements& squares) const {
  StateOps ops(collectives_);
  for (const auto& c : classes(n)) {
    const double sum = c.is_experts ? squares.experts : squares.dense;
    if (c.elements <= 0.0) continue;
    ops.add({OpKind::all_gather, c.is_experts ? "expert_matrix_all_gather" : "matrix_all_gather",
             matrix_bytes_ * sum / c.elements, {c.stride, c.sizes.optimizer}});
  }
  return ops;
}

StateOps StateTraffic::after_optimizer(const StateElements& n) const {
  StateOps ops(collectives_);
  for (const auto& c : classes(n)) {
    const auto p = c.sizes.parameters, o = c.sizes.optimizer;
    const bool on_host = offload_.weights && o == p;
    if (offload_.optimizer && !on_host) {
      ops.add(to_device("updated_weights_to_device", part(weight_bytes_ * c.elements, o)));
    }
    if (!gathers_ahead()) ops.add(updated_gather_of(c));
    if (offload_.weights && !(offload_.optimizer && on_host)) {
      ops.add(to_host("updated_weights_to_host", part(weight_bytes_ * c.elements, p)));
    }
  }
  return ops;
}

StateOps StateTraffic::reduce_each(const StateElements& n) const {
  StateOps ops(collectives_);
  for (const auto& c : classes(n)) {
    ops.add({OpKind::reduce_scatter, c.is_experts ? "expert_gradient_reduce_scatter" : "gradient_reduce_scatter",
             reduce_bytes_ * c.elements, {c.stride, c.sizes.gradients}});
    if (c.sizes.gradients_on_host) ops.add(to_host("gradients_to_host", part(reduce_bytes_ * c.elements, c.sizes.gradients)));
  }
  return ops;
}

StateOps StateTraffic::reduce_last(const StateElements& n) const {
  StateOps ops(collectives_);
  for (const auto& c : classes(n)) {
    const auto g = c.sizes.gradients, o = c.sizes.optimizer;
    ops.add({OpKind::reduce_scatter, c.is_experts ? "expert_gradient_reduce_scatter" : "gradient_reduce_scatter",
             part(reduce_bytes_ * c.elements, g), {c.stride * g, o / g}});
    ops.add({OpKind::all_reduce, c.is_experts ? "expert_gradient_all_reduce" : "gradient_all_reduce",
             part(reduce_bytes_ * c.elements, o), {c.stride * o, c.sizes.replicas / o}});
    if (offload_.optimizer && !c.sizes.gradients_on_host) {
      ops.add(to_host("gradients_to_host", part(gradient_bytes_ * c.elements, o)));
    }
  }
  return ops;
}

StateOps StateTraffic::reduce_copies(const StateElements& n, std::int64_t stride) const {
  StateOps ops;
  ops.add({shards_optimizer() ? OpKind::reduce_scatter : OpKind::all_reduce, "copies_gradient_reduce",
           reduce_bytes_ * optimizer_elements(n), {stride, 2}});
  return ops;
}

StateOps StateTraffic::gather_copies(const StateElements& n, std::int64_t stride) const {
  StateOps ops;
  if (shards_optimizer()) {
    ops.add({OpKind::all_gather, "copies_parameter_all_gather", gather_bytes_ * optimizer_elements(n), {stride, 2}});
  }
  return ops;
}

}  // namespace core

#include "core/graph/launches.h"

#include <cmath>
#include <string_view>

namespace core {

namespace {

bool has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

// Blocks name their kernels after what they do, and recipes theirs after the GEMM and the pass (core/model/blocks).
const Launches::Pass& pass_of(const Launches& launches, std::string_view name) {
  if (has(name, "norm")) return launches.norm;
  if (has(name, "activation")) return launches.activation;
  if (has(name, "residual") || has(name, "dropout")) return launches.residual;
  if (has(name, "rope")) return launches.rope;
  return launches.other;
}

// What runs in the backward pass because its result was not kept is forward work.
std::int64_t of(const Launches::Pass& pass, const OpSpec& spec) {
  return spec.direction == Direction::forward ? pass.forward : pass.backward;
}

bool is_router(std::string_view name) { return name.starts_with("router"); }

bool is_of_experts(const BodyOp& op) {
  if (op.scope == Scope::expert) return true;
  for (const std::string_view part : {"experts", "shared", "permute", "sort_by", "dispatch", "combine", "mlp"}) {
    if (has(op.spec.name, part)) return true;
  }
  return false;
}

// Whether graphs of parts of a layer hold an operation.
bool in_graph(const BodyOp& op, CudaGraphs graphs) {
  const bool both = graphs == CudaGraphs::attention_router;
  if (is_router(op.spec.name)) return both || graphs == CudaGraphs::router;
  return (both || graphs == CudaGraphs::attention) && !is_of_experts(op);
}

// Biases of experts are added one expert after another.
std::int64_t of_memory_bound(const Launches& launches, const OpSpec& spec) {
  const auto count = of(pass_of(launches, spec.name), spec);
  if (!has(spec.name, "experts_bias")) return count;
  const double each = spec.direction == Direction::forward ? launches.expert_bias_forward : launches.expert_bias_backward;
  return count + std::llround(each * static_cast<double>(spec.batch));
}

std::int64_t of_gemm(const Launches& launches, const BodyOp& op) {
  const auto& spec = op.spec;
  std::int64_t count = launches.input_gradient;
  if (spec.direction == Direction::forward || op.recompute) count = launches.gemm;
  else if (op.weight_gradient) count = launches.weight_gradient;
  if (spec.grouped) count += std::llround(launches.expert * static_cast<double>(spec.batch));
  if (is_router(spec.name) && !op.weight_gradient) count += of(launches.router, spec);
  return count;
}

}  // namespace

std::int64_t launches_of(const Launches& launches, const BodyOp& op, CudaGraphs graphs) {
  if (in_graph(op, graphs)) return 0;
  const auto& spec = op.spec;
  if (is_collective(spec.kind)) return launches.collective;
  switch (spec.kind) {
    case OpKind::gemm: return of_gemm(launches, op);
    case OpKind::attention:
      return of(spec.kernel == AttentionKernel::unfused ? launches.unfused_attention : launches.flash_attention, spec);
    default: return of_memory_bound(launches, spec);
  }
}

std::int64_t launches_of(const Launches& launches, const std::vector<const BodyOp*>& ops, CudaGraphs graphs) {
  LaunchCount count(launches, graphs);
  for (const auto* op : ops) count.add(*op);
  return count.total();
}

}  // namespace core

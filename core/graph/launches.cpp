#include "core/graph/launches.h"

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

}  // namespace

std::int64_t launches_of(const Launches& launches, const BodyOp& op) {
  const auto& spec = op.spec;
  if (is_collective(spec.kind)) return launches.collective;
  switch (spec.kind) {
    case OpKind::gemm:
      if (spec.direction == Direction::forward || op.recompute) return launches.gemm;
      return op.weight_gradient ? launches.weight_gradient : launches.input_gradient;
    case OpKind::attention:
      return of(spec.kernel == AttentionKernel::unfused ? launches.unfused_attention : launches.flash_attention, spec);
    default: return of(pass_of(launches, spec.name), spec);
  }
}

std::int64_t launches_of(const Launches& launches, const std::vector<const BodyOp*>& ops) {
  LaunchCount count(launches);
  for (const auto* op : ops) count.add(*op);
  return count.total();
}

}  // namespace core

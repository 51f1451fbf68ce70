// A fused Adam over `m` parameters: memory-bound, t = t0 + bytes / (efficiency bandwidth). It
// streams four or five arrays at once, hence an efficiency of its own.

#include "core/error.h"
#include "simulator/cost/cost.h"

namespace simulator::kernels {

namespace {

Cost time(const core::OpSpec& op, const Curves& curves) {
  CORE_ASSERT(op.bytes.value >= 0.0);
  const core::Seconds fixed{curves.at("memory_bound.fixed_us") * 1e-6};
  return {fixed + op.bytes / (curves.gpu().memory_bandwidth * curves.at("optimizer.efficiency")),
          curves.origin_of("optimizer")};
}

}  // namespace

extern const KernelCost optimizer;
const KernelCost optimizer = {
    "optimizer", [](core::OpKind kind) { return kind == core::OpKind::optimizer; }, time};

}  // namespace simulator::kernels

// An optimizer over `m` parameters: memory-bound, t = t0 + bytes / (efficiency bandwidth). It
// streams four or five arrays at once, hence an efficiency of its own. Muon's Newton-Schulz steps
// are large GEMMs on top: flops / (GEMM efficiency peak).

#include <string>

#include "core/error.h"
#include "simulator/cost/cost.h"
#include "simulator/cost/record.h"

namespace simulator::kernels {

namespace {

Cost time(const core::OpSpec& op, const Curves& curves) {
  CORE_ASSERT(op.bytes.value >= 0.0);
  const core::Seconds fixed{curves.at("memory_bound.fixed_us") * 1e-6};
  core::Seconds gemms{0.0};
  if (op.flops.value > 0.0) {
    const std::string format(core::name_of(op.format));
    const auto peak = curves.gpu().peak(format);
    CORE_ASSERT(peak.has_value());
    gemms = op.flops / (*peak * curves.at("gemm." + format + ".efficiency"));
  }
  Recording::note("Newton-Schulz GEMMs", 1e6 * gemms.value, "us");
  Recording::note("fixed", 1e6 * fixed.value, "us");
  Recording::note("memory traffic",
                  1e6 * (op.bytes / (curves.gpu().memory_bandwidth * curves.at("optimizer.efficiency"))).value, "us");
  return {fixed + op.bytes / (curves.gpu().memory_bandwidth * curves.at("optimizer.efficiency")) + gemms,
          curves.origin_of("optimizer")};
}

}  // namespace

extern const KernelCost optimizer;
const KernelCost optimizer = {
    "optimizer", [](core::OpKind kind) { return kind == core::OpKind::optimizer; }, time};

}  // namespace simulator::kernels

// Kernels that only move memory: t = t0 + bytes / (efficiency bandwidth), with t0 the latency of
// the first bytes and of the grid's tail. The efficiency of a name ("norm", "softmax", ...) is
// "memory_bound.<name>.efficiency" where the curves have one, else "memory_bound.efficiency" (plain
// elementwise). Moves of tokens to and from their experts go by one name, "permute". Operands that
// still sit in L2 are not counted as faster.

#include <string>

#include "core/error.h"
#include "simulator/cost/cost.h"
#include "simulator/cost/record.h"

namespace simulator::kernels {

namespace {

std::string curve_name(std::string_view name) {
  for (const std::string_view move : {"permute", "unpermute", "sort_by"}) {
    if (name.starts_with(move)) return "permute";
  }
  return std::string(name);
}

Cost time(const core::OpSpec& op, const Curves& curves) {
  CORE_ASSERT(op.bytes.value >= 0.0);
  const double efficiency = curves.find("memory_bound." + curve_name(op.name) + ".efficiency")
                                .value_or(curves.at("memory_bound.efficiency"));
  const core::Seconds fixed{curves.at("memory_bound.fixed_us") * 1e-6};
  Recording::note("rate that it reaches", 1e-9 * efficiency * curves.gpu().memory_bandwidth.value, "GB/s");
  Recording::note("memory traffic", 1e6 * (op.bytes / (curves.gpu().memory_bandwidth * efficiency)).value, "us");
  Recording::note("fixed", 1e6 * fixed.value, "us");
  return {fixed + op.bytes / (curves.gpu().memory_bandwidth * efficiency),
          curves.origin_of("memory_bound")};
}

}  // namespace

extern const KernelCost memory_bound;
const KernelCost memory_bound = {
    "memory_bound", [](core::OpKind kind) { return kind == core::OpKind::memory_bound; }, time};

}  // namespace simulator::kernels

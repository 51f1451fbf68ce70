#include "core/error.h"
#include "simulator/cost/cost.h"

namespace simulator {

Cost kernel_time(const core::OpSpec& op, const Curves& curves) {
  for (const KernelCost* kernel : kernels::all()) {
    if (kernel->prices(op.kind)) {
      return kernel->time(op, curves);
    }
  }
  core::contract_violated("some kernel prices the operation", std::source_location::current());
}

}  // namespace simulator

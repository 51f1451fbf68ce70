// Copies between GPU and pinned host memory by a copy engine: t = t0 + bytes / (efficiency link),
// where the link is Gpu::host_link: what one GPU gets while all of its node copy, over PCIe or a
// coherent link (NVLink-C2C). The two directions do not slow each other.

#include "core/error.h"
#include "simulator/cost/cost.h"
#include "simulator/cost/record.h"

namespace simulator::kernels {

namespace {

Cost time(const core::OpSpec& op, const Curves& curves) {
  CORE_ASSERT(op.bytes.value >= 0.0);
  const core::Gpu& gpu = curves.gpu();
  CORE_ASSERT(gpu.host_link.value > 0.0);
  const double efficiency = curves.needed(
      gpu.host_c2c ? "host.c2c_efficiency" : "host.pcie_efficiency", core::name_of(op.kind));
  const core::Seconds fixed{curves.needed("host.latency_us", core::name_of(op.kind)) * 1e-6};
  Recording::note("rate that it reaches", 1e-9 * efficiency * gpu.host_link.value, "GB/s");
  Recording::note("fixed", 1e6 * fixed.value, "us");
  return {fixed + op.bytes / (gpu.host_link * efficiency), curves.origin_of("host")};
}

}  // namespace

extern const KernelCost host_copy;
const KernelCost host_copy = {"host_copy",
                              [](core::OpKind kind) {
                                return kind == core::OpKind::copy_to_host ||
                                       kind == core::OpKind::copy_to_device;
                              },
                              time};

}  // namespace simulator::kernels

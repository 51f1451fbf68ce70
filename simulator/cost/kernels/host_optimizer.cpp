// An optimizer by the CPU over states in host memory (DeepSpeed's CPU-Adam, ZeRO-Offload, arXiv 2101.06840, section 5): vectorised
// over all cores it streams its arrays, so that t = bytes / (the GPU's part of the host memory bandwidth), which is measured as
// STREAM's triad and needs no further efficiency.

#include <fmt/format.h>

#include "core/error.h"
#include "simulator/cost/cost.h"
#include "simulator/cost/record.h"

namespace simulator::kernels {

namespace {

Cost time(const core::OpSpec& op, const Curves& curves) {
  CORE_ASSERT(op.bytes.value >= 0.0);
  const auto& bandwidth = curves.gpu().host_memory_bandwidth;
  if (!bandwidth) {
    throw core::InputError(fmt::format(
        "offload=optimizer: the node of {} has no host_memory_GBps (data/nodes), at which the host updates its states",
        curves.gpu().name));
  }
  Recording::note("host memory bandwidth of a GPU's part", 1e-9 * bandwidth->value, "GB/s");
  return {op.bytes / *bandwidth, Origin::roofline};
}

}  // namespace

extern const KernelCost host_optimizer;
const KernelCost host_optimizer = {
    "host_optimizer", [](core::OpKind kind) { return kind == core::OpKind::host_optimizer; }, time};

}  // namespace simulator::kernels

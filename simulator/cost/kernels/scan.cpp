// Chunked linear attention or state-space scan (Gated DeltaNet, KDA, Mamba-2's SSD, RWKV): within
// chunks of tokens small GEMMs, between them a state that is passed on.
//   t = t0 + max(FLOPs / (e peak), bytes / (efficiency bandwidth))
// e is what the chunk kernels reach on their small GEMMs (Yang et al. 2024, "Gated Linear Attention",
// Dao & Gu 2024, "Transformers are SSMs"), forward and backward; t0 the several kernels of one scan.

#include <algorithm>

#include "core/error.h"
#include "simulator/cost/cost.h"
#include "simulator/cost/record.h"

namespace simulator::kernels {

namespace {

// The GEMMs of a chunk run in 16 bits, their sums and the state in fp32.
core::Format chunk_format(core::Format format) {
  const bool narrow = format == core::Format::fp8 || format == core::Format::fp4;
  return narrow ? core::Format::bf16 : format;
}

Cost time(const core::OpSpec& op, const Curves& curves) {
  CORE_ASSERT(op.flops.value >= 0.0 && op.bytes.value >= 0.0);
  const auto peak = curves.gpu().peak(core::name_of(chunk_format(op.format)));
  CORE_ASSERT(peak.has_value());
  const bool forward = op.direction == core::Direction::forward;
  const double efficiency =
      curves.needed(forward ? "scan.forward_efficiency" : "scan.backward_efficiency", "a scan");
  const core::Seconds compute = op.flops / (*peak * efficiency);
  const core::Seconds memory =
      op.bytes / (curves.gpu().memory_bandwidth * curves.at("memory_bound.efficiency"));
  const core::Seconds fixed{curves.needed("scan.fixed_us", "a scan") * 1e-6};
  Recording::note("GEMMs of chunks", 1e6 * compute.value, "us");
  Recording::note("memory traffic, beside them", 1e6 * memory.value, "us");
  Recording::note("fixed", 1e6 * fixed.value, "us");
  return {fixed + std::max(compute, memory), curves.origin_of("scan")};
}

}  // namespace

extern const KernelCost scan;
const KernelCost scan = {
    "scan", [](core::OpKind kind) { return kind == core::OpKind::scan; }, time};

}  // namespace simulator::kernels

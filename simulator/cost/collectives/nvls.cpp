// NVLS all-reduce: the NVSwitch reduces and multicasts (NVLink SHARP), so that each member sends
// its n bytes once and the n / p bytes that it owns once more: base + n (p + 1) / (p e B). NCCL
// starts it above a number of GPUs ("collectives.nvls.above_gpus").

#include "simulator/cost/protocols.h"
#include "simulator/cost/record.h"

namespace simulator::collectives {
namespace {

std::optional<Cost> time(const Collective& op, const core::GroupLinks& links, const Curves& curves) {
  const std::optional<double> above = curves.find("collectives.nvls.above_gpus");
  const bool applies = op.kind == core::OpKind::all_reduce && links.switch_reduces && above &&
                       static_cast<double>(links.size) > *above;
  if (!applies) return std::nullopt;
  const core::Seconds base{curves.at("collectives.nvls.base_us") * 1e-6};
  Recording::note("base", 1e6 * base.value, "us");
  Recording::note("rate of the switch", 1e-9 * nvls_rate(links.size, links.intra, curves).value, "GB/s");
  return Cost{base + op.bytes / nvls_rate(links.size, links.intra, curves),
              curves.origin_of("collectives")};
}

}  // namespace

extern const CollectiveCost nvls;
const CollectiveCost nvls = {"nvls", time};

}  // namespace simulator::collectives

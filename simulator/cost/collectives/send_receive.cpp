// Point to point: alpha + n / B over the link between two ranks. One message drives one NIC with
// few queues, so that it reaches less of the NIC than a collective does.

#include "simulator/cost/protocols.h"

namespace simulator::collectives {
namespace {

std::optional<Cost> time(const Collective& op, const core::GroupLinks& links, const Curves& curves) {
  if (op.kind != core::OpKind::send_receive) return std::nullopt;
  const core::Seconds base{curves.at("collectives.send.base_us") * 1e-6};
  const Protocol low_latency = protocols(curves).front();
  const Origin origin = curves.origin_of("collectives");
  if (links.domains > 1) {
    const core::Seconds hop = low_latency.inter_hop(links, low_latency.ring_network);
    return Cost{base + hop + op.bytes / (links.inter * curves.at("collectives.send.nic_efficiency")),
                origin};
  }
  const double efficiency = curves.at(links.intra_nvlink ? "collectives.send.nvlink_efficiency"
                                                         : "collectives.pcie.efficiency");
  return Cost{base + low_latency.intra_hop(links) + op.bytes / (links.intra * efficiency), origin};
}

}  // namespace

extern const CollectiveCost send_receive;
const CollectiveCost send_receive = {"send_receive", time};

}  // namespace simulator::collectives

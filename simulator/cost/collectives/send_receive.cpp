// Point to point: alpha + n / B over the link between two ranks. One message drives one NIC with
// few queues, so that it reaches less of the NIC than a collective does. In a group of more than two, each
// member sends to the next: where neighbours are in different domains, the message has one member's part
// of what the group has between domains.

#include "simulator/cost/protocols.h"
#include "simulator/cost/record.h"

namespace simulator::collectives {
namespace {

std::optional<Cost> time(const Collective& op, const core::GroupLinks& links, const Curves& curves) {
  if (op.kind != core::OpKind::send_receive) return std::nullopt;
  const core::Seconds base{curves.at("collectives.send.base_us") * 1e-6};
  const Protocol low_latency = protocols(curves).front();
  const Origin origin = curves.origin_of("collectives");
  if (links.domains > 1) {
    const core::Seconds hop = low_latency.inter_hop(links, low_latency.ring_network);
    const core::BytesPerSecond of_one = links.inter * (1.0 / static_cast<double>(links.per_domain));
    const auto rate = of_one * curves.at("collectives.send.nic_efficiency");
    Recording::note("base and hop", 1e6 * (base + hop).value, "us");
    Recording::note("rate", 1e-9 * rate.value, "GB/s");
    return Cost{base + hop + op.bytes / rate, origin};
  }
  const double efficiency = curves.at(links.intra_nvlink ? "collectives.send.nvlink_efficiency"
                                                         : "collectives.pcie.efficiency");
  Recording::note("base and hop", 1e6 * (base + low_latency.intra_hop(links)).value, "us");
  Recording::note("rate", 1e-9 * efficiency * links.intra.value, "GB/s");
  return Cost{base + low_latency.intra_hop(links) + op.bytes / (links.intra * efficiency), origin};
}

}  // namespace

extern const CollectiveCost send_receive;
const CollectiveCost send_receive = {"send_receive", time};

}  // namespace simulator::collectives

// Tree all-reduce between domains (NCCL's double binary tree, Sanders, Speck & Traeff 2009): up and
// down through the k members of a domain and log2 m levels of domains,
//   2 (k - 1) alpha_intra + 2 log2(m) alpha_inter + n / (e B)
// with B the lesser of NVLink and NICs and e the part of it that a tree reaches.

#include <algorithm>

#include "simulator/cost/protocols.h"
#include "simulator/cost/record.h"

namespace simulator::collectives {
namespace {

std::optional<Cost> time(const Collective& op, const core::GroupLinks& links, const Curves& curves) {
  if (op.kind != core::OpKind::all_reduce || links.domains == 1) return std::nullopt;
  core::BytesPerSecond rate = inter_rate(links, curves);
  if (links.per_domain > 1) rate = std::min(rate, intra_rate(links, curves));
  rate = rate * curves.at("collectives.tree.efficiency");
  const double inside = 2.0 * static_cast<double>(links.per_domain - 1);
  const double levels = 2.0 * static_cast<double>(tree_levels(links.domains));
  FastestProtocol best;
  for (const Protocol& protocol : protocols(curves)) {
    const core::Seconds latency = protocol.base + protocol.intra_hop(links) * inside +
                                  protocol.inter_hop(links, protocol.tree_network) * levels;
    best.take(latency, op.bytes / (rate * protocol.payload));
  }
  Recording::note("levels of domains", 0.5 * levels);
  Recording::note("rate of the tree", 1e-9 * rate.value, "GB/s");
  best.note();
  return Cost{best.time(), curves.origin_of("collectives")};
}

}  // namespace

extern const CollectiveCost tree;
const CollectiveCost tree = {"tree", time};

}  // namespace simulator::collectives

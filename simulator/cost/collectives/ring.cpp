// Ring: p members pass shares of n / p bytes to their neighbour, p - 1 times for all-gather and
// reduce-scatter, 2 (p - 1) times for all-reduce (Patarasuk & Yuan 2009):
//   steps (alpha + n / (p B))
// where alpha of the steps that cross between domains is the network's. NCCL runs as many rings as
// it has NICs, so B is the lesser of NVLink and of all NICs of the group together.

#include <algorithm>

#include "simulator/cost/protocols.h"
#include "simulator/cost/record.h"

namespace simulator::collectives {
namespace {

using core::OpKind;

core::BytesPerSecond ring_rate(const core::GroupLinks& links, const Curves& curves) {
  if (links.domains == 1) return intra_rate(links, curves);
  core::BytesPerSecond rate = inter_rate(links, curves);
  if (links.per_domain > 1) rate = std::min(rate, intra_rate(links, curves));
  return rate * fabric_share(links, curves);
}

std::optional<Cost> time(const Collective& op, const core::GroupLinks& links, const Curves& curves) {
  const bool one_pass = op.kind == OpKind::all_gather || op.kind == OpKind::reduce_scatter;
  if (!one_pass && op.kind != OpKind::all_reduce) return std::nullopt;
  const bool has_levels = links.domains > 1 && links.per_domain > 1;
  if (one_pass && op.levels != Levels::one && has_levels) return std::nullopt;
  const double passes = one_pass ? 1.0 : 2.0;
  const double p = static_cast<double>(links.size);
  const double crossings =
      links.domains == 1 ? 0.0 : passes * static_cast<double>(links.domains - 1);
  const double inside = passes * (p - 1.0) - crossings;
  const core::Bytes wire = op.bytes * (passes * (p - 1.0) / p);
  const core::BytesPerSecond rate = ring_rate(links, curves);
  FastestProtocol best;
  for (const Protocol& protocol : protocols(curves)) {
    const core::Seconds latency = protocol.base + protocol.intra_hop(links) * inside +
                                  protocol.inter_hop(links, protocol.ring_network) * crossings;
    best.take(latency, wire / (rate * protocol.payload));
  }
  Recording::note("bytes on the wire", 1e-6 * wire.value, "MB");
  Recording::note("rate of the ring", 1e-9 * rate.value, "GB/s");
  best.note();
  return Cost{best.time(), curves.origin_of("collectives")};
}

}  // namespace

extern const CollectiveCost ring;
const CollectiveCost ring = {"ring", time};

}  // namespace simulator::collectives

// Two levels, for groups with several members in each of m domains.
// All-reduce: reduce-scatter inside the domain, all-reduce of the shares between domains,
// all-gather inside, the three pipelined (NCCL's NVLSTree; with rings inside where the switch does
// not reduce):
//   base + 2 log2(m) alpha_inter + n / min(B_inside, B_between)
//   B_inside = NVLS rate, or B k / (2 (k - 1)) of rings; B_between = B_inter m / (2 (m - 1))
// All-gather and reduce-scatter, where the framework asks for levels (NCCL does not choose them):
//   two levels (ZeRO++, Wang et al. 2023): t_between + t_inside, each a ring
//   overlapping rings (PaRO, arXiv 2310.06003): shares pass on inside as they arrive from the other
//   domains, max(t_inside, t_between + t_inside / m): the share that arrives last passes on alone

#include <algorithm>

#include "simulator/cost/protocols.h"
#include "simulator/cost/record.h"

namespace simulator::collectives {

extern const CollectiveCost ring;

namespace {

using core::GroupLinks;
using core::OpKind;

core::BytesPerSecond inside_rate(const GroupLinks& links, const Curves& curves) {
  const double k = static_cast<double>(links.per_domain);
  if (links.domain_reduces && curves.find("collectives.nvls.above_gpus")) {
    return nvls_rate(links.per_domain, links.intra, curves);
  }
  return intra_rate(links, curves) * (k / (2.0 * (k - 1.0)));
}

Cost all_reduce_time(core::Bytes bytes, const GroupLinks& links, const Curves& curves) {
  const double m = static_cast<double>(links.domains);
  const core::BytesPerSecond between = inter_rate(links, curves) * (m / (2.0 * (m - 1.0)));
  const Protocol simple = protocols(curves).back();
  const core::Seconds latency{curves.at("collectives.hierarchical.base_us") * 1e-6};
  const core::Seconds network = simple.inter_hop(links, simple.tree_network) *
                                (2.0 * static_cast<double>(tree_levels(links.domains)));
  Recording::note("base", 1e6 * latency.value, "us");
  Recording::note("network of all levels", 1e6 * network.value, "us");
  Recording::note("rate inside", 1e-9 * inside_rate(links, curves).value, "GB/s");
  Recording::note("rate between", 1e-9 * between.value, "GB/s");
  return {latency + network + bytes / std::min(inside_rate(links, curves), between),
          curves.origin_of("collectives")};
}

// A gather inside moves the whole buffer; the one between moves each member's column of m shares,
// and the k columns of a domain share its NICs.
Cost gather_time(const Collective& op, const GroupLinks& links, const Curves& curves) {
  GroupLinks inside = links;
  inside.size = links.per_domain;
  inside.domains = 1;
  GroupLinks between = links;
  between.size = links.domains;
  between.per_domain = 1;
  const Collective part{.kind = op.kind, .bytes = op.bytes};
  const Cost first = *ring.time(part, inside, curves);
  const Cost second = *ring.time(part, between, curves);
  Recording::note("inside a domain", 1e6 * first.time.value, "us");
  Recording::note("between domains", 1e6 * second.time.value, "us");
  if (op.levels == Levels::two) return {first.time + second.time, first.origin};
  const core::Seconds last = first.time * (1.0 / static_cast<double>(links.domains));
  return {std::max(first.time, second.time + last), first.origin};
}

std::optional<Cost> time(const Collective& op, const GroupLinks& links, const Curves& curves) {
  if (links.domains == 1 || links.per_domain == 1) return std::nullopt;
  if (op.kind == OpKind::all_reduce) return all_reduce_time(op.bytes, links, curves);
  const bool is_gather = op.kind == OpKind::all_gather || op.kind == OpKind::reduce_scatter;
  if (!is_gather || op.levels == Levels::one) return std::nullopt;
  return gather_time(op, links, curves);
}

}  // namespace

extern const CollectiveCost hierarchical;
const CollectiveCost hierarchical = {"hierarchical", time};

}  // namespace simulator::collectives

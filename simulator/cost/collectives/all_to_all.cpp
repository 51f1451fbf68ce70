// NCCL's all-to-all: p - 1 rounds of sends, each rank with another partner in each; n bytes a rank,
// its own share of n / p included (nccl-tests: bus bandwidth n (p - 1) / (p t)).
// Inside a domain:
//   base + alpha + n (p - 1) / (p e(n / p) B)
// Across m domains of k members, the domain's link between shared by its members:
//   base + a_net + a_peer (p - k) + alpha_inter + k n (p - 1) / (p e(n / p) B_exchange)
// where all rounds count, not only those that cross (k n (p - k) / p): NCCL's rounds pass in lockstep,
// and in nearly every round some pair of a domain crosses. Two nodes of H200 and of B200, two racks
// of GB300 and four nodes of A100 and of H100 then all reach .82 to .96 of their NICs. Where
// "collectives.all_to_all.lockstep" is 0 (RCCL, B300 with NCCL 2.28.9) only what crosses counts, and
// what stays inside passes beside it.
// e by bytes for a partner: small messages do not fill a link.

#include <algorithm>

#include "simulator/cost/protocols.h"
#include "simulator/cost/record.h"

namespace simulator::collectives {
namespace {

constexpr std::string_view need = "all_to_all";

core::Seconds microseconds(double us) { return core::Seconds{us * 1e-6}; }

double inside_efficiency(const core::GroupLinks& links, double per_peer, const Curves& curves) {
  const double full =
      curves.needed(links.intra_nvlink ? "collectives.all_to_all.nvlink_efficiency"
                                       : "collectives.all_to_all.pcie_efficiency",
                    need);
  return full * interpolate(curves.list("collectives.all_to_all.nvlink_bytes"),
                            curves.list("collectives.all_to_all.nvlink_share"),
                            per_peer);
}

double between_efficiency(const core::GroupLinks& links, double per_peer, const Curves& curves) {
  return curves.needed("collectives.all_to_all.nic_efficiency", need) *
         fabric_share(links, curves) *
         interpolate(curves.list("collectives.all_to_all.nic_bytes"),
                     curves.list("collectives.all_to_all.nic_share"),
                     per_peer);
}

// What passes inside domains, of the bytes to `partners` others of p.
core::Seconds inside_time(const Collective& op,
                          const core::GroupLinks& links,
                          double partners,
                          const Curves& curves) {
  const double p = static_cast<double>(links.size);
  const double per_peer = op.bytes.value / p;
  return core::Bytes{per_peer * partners} /
         (links.intra * inside_efficiency(links, per_peer, curves));
}

core::Seconds between_time(const Collective& op,
                           const core::GroupLinks& links,
                           double partners,
                           const Curves& curves) {
  const double p = static_cast<double>(links.size), k = static_cast<double>(links.per_domain);
  const double per_peer = op.bytes.value / p;
  return core::Bytes{per_peer * partners * k} /
         (links.exchange * between_efficiency(links, per_peer, curves));
}

core::Seconds across_domains(const Collective& op,
                             const core::GroupLinks& links,
                             const Curves& curves) {
  const double p = static_cast<double>(links.size), k = static_cast<double>(links.per_domain);
  const core::Seconds latency =
      microseconds(curves.needed("collectives.all_to_all.network_us", need) +
                   curves.needed("collectives.all_to_all.peer_us", need) * (p - k)) +
      links.inter_latency;
  const bool lockstep = curves.needed("collectives.all_to_all.lockstep", need) > 0.0;
  core::Seconds wire = between_time(op, links, lockstep ? p - 1.0 : p - k, curves);
  if (links.per_domain > 1) wire = std::max(wire, inside_time(op, links, k - 1.0, curves));
  Recording::note("latency of hops and partners", 1e6 * latency.value, "us");
  Recording::note("data on the wire", 1e6 * wire.value, "us");
  return latency + wire;
}

std::optional<Cost> time(const Collective& op, const core::GroupLinks& links, const Curves& curves) {
  if (op.kind != core::OpKind::all_to_all || op.one_sided) return std::nullopt;
  const double p = static_cast<double>(links.size);
  const core::Seconds base = microseconds(curves.needed("collectives.all_to_all.base_us", need));
  const Origin origin = curves.origin_of("collectives");
  Recording::note("base", 1e6 * base.value, "us");
  if (links.domains > 1) return Cost{base + across_domains(op, links, curves), origin};
  // Partners are reached side by side, so one hop counts, not p - 1.
  const auto wire = inside_time(op, links, p - 1.0, curves);
  Recording::note("a hop", 1e6 * links.intra_latency.value, "us");
  Recording::note("data on the wire", 1e6 * wire.value, "us");
  return Cost{base + links.intra_latency + wire, origin};
}

}  // namespace

extern const CollectiveCost all_to_all;
const CollectiveCost all_to_all = {"all_to_all", time};

}  // namespace simulator::collectives

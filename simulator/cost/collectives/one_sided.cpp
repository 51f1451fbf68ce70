// One-sided all-to-all of experts' tokens (DeepEP, MORI, NVSHMEM): `bytes` holds c copies of each
// token, so that a copy of all tokens is n / c bytes. Two ways, the faster of which is taken:
//   forwarded (throughput kernels): one copy of a token crosses to each domain that has one of its
//     experts and is forwarded there to each rank that has one; both pass at once,
//       base + forward + max(k (n / c) D' / B_exchange, (n / c) R' / B)
//     where forward, the exchange of counts across the network, falls away inside one domain
//   direct (low-latency kernels): every copy goes straight to its rank,
//       base + max(k n (p - k) / p / B_exchange, n (k - 1) / p / B)
// With copies drawn evenly, the expected number of distinct places of c copies among x is
//   d(x, c) = x (1 - (1 - 1/x)^c)
// A token goes to at most q domains (node-limited routing), so D = d(min(q, m), c) domains of which
// D' = D (m - 1) / m are others, and R = d(min(q, m) k, c) ranks of which R' = R (p - 1) / p are
// others. Combine is the same way back.

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "simulator/cost/protocols.h"
#include "simulator/cost/record.h"

namespace simulator::collectives {
namespace {

constexpr std::string_view need = "one-sided all_to_all";

core::Seconds microseconds(double us) { return core::Seconds{us * 1e-6}; }

double distinct(double places, double copies) {
  return places * (1.0 - std::pow(1.0 - 1.0 / places, copies));
}

struct Rates {
  core::BytesPerSecond inside;   // of a member
  core::BytesPerSecond between;  // of all members of a domain together
};

Rates rates_of(const core::GroupLinks& links, const Curves& curves) {
  const double inside = links.intra_nvlink
                            ? curves.needed("collectives.one_sided.nvlink_efficiency", need)
                            : curves.needed("collectives.all_to_all.pcie_efficiency", need);
  const double between = curves.needed("collectives.one_sided.nic_efficiency", need);
  return {links.intra * inside, links.exchange * between};
}

// Time to send some bytes of each member inside its domain beside others out of it.
core::Seconds both(core::Bytes inside, core::Bytes out, const core::GroupLinks& links, const Rates& rates) {
  core::Seconds time = inside / rates.inside;
  if (links.domains > 1) {
    time = std::max(time, out * static_cast<double>(links.per_domain) / rates.between);
  }
  return time;
}

core::Seconds forwarded(const Collective& op, const core::GroupLinks& links, const Rates& rates) {
  const double m = static_cast<double>(links.domains), p = static_cast<double>(links.size);
  const double k = static_cast<double>(links.per_domain), c = static_cast<double>(op.copies);
  const double limit = static_cast<double>(op.most_domains);
  const double reached = limit > 0.0 ? std::min(limit, m) : m;
  const core::Bytes copy = op.bytes * (1.0 / c);
  const double domains = distinct(reached, c) * (m - 1.0) / m;
  const double ranks = distinct(std::min(reached * k, p), c) * (p - 1.0) / p;
  return both(copy * ranks, copy * domains, links, rates);
}

core::Seconds direct(const Collective& op, const core::GroupLinks& links, const Rates& rates) {
  const double p = static_cast<double>(links.size), k = static_cast<double>(links.per_domain);
  return both(op.bytes * ((k - 1.0) / p), op.bytes * ((p - k) / p), links, rates);
}

std::optional<Cost> time(const Collective& op, const core::GroupLinks& links, const Curves& curves) {
  if (op.kind != core::OpKind::all_to_all || !op.one_sided) return std::nullopt;
  CORE_ASSERT(op.copies >= 1 && op.most_domains >= 0);
  const Rates rates = rates_of(links, curves);
  const core::Seconds base = microseconds(curves.needed("collectives.one_sided.base_us", need));
  const core::Seconds exchange = microseconds(curves.needed("collectives.one_sided.forward_us", need));
  const core::Seconds forward = links.domains > 1 ? exchange : core::Seconds{0.0};
  const core::Seconds wire =
      std::min(forward + forwarded(op, links, rates), direct(op, links, rates));
  Recording::note("base", 1e6 * base.value, "us");
  Recording::note("rate inside a domain", 1e-9 * rates.inside.value, "GB/s");
  if (links.domains > 1) Recording::note("rate between domains, all members", 1e-9 * rates.between.value, "GB/s");
  Recording::note("data on the wire, the faster way", 1e6 * wire.value, "us");
  return Cost{base + wire + (links.domains > 1 ? links.inter_latency : links.intra_latency),
              curves.origin_of("collectives")};
}

}  // namespace

extern const CollectiveCost one_sided;
const CollectiveCost one_sided = {"one_sided", time};

}  // namespace simulator::collectives

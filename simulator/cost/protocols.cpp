#include "simulator/cost/protocols.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "simulator/cost/record.h"

namespace simulator {
namespace {

struct Keys {
  std::string_view base, hop_factor, payload, ring_network, tree_network, network_factor;
};

constexpr std::array<Keys, 3> protocol_keys = {Keys{"collectives.ll.base_us",
                                                    "collectives.ll.hop_factor",
                                                    "collectives.ll.payload_efficiency",
                                                    "collectives.ll.ring_network_us",
                                                    "collectives.ll.tree_network_us",
                                                    "collectives.ll.network_factor"},
                                               Keys{"collectives.ll128.base_us",
                                                    "collectives.ll128.hop_factor",
                                                    "collectives.ll128.payload_efficiency",
                                                    "collectives.ll128.ring_network_us",
                                                    "collectives.ll128.tree_network_us",
                                                    "collectives.ll128.network_factor"},
                                               Keys{"collectives.simple.base_us",
                                                    "collectives.simple.hop_factor",
                                                    "collectives.simple.payload_efficiency",
                                                    "collectives.simple.ring_network_us",
                                                    "collectives.simple.tree_network_us",
                                                    "collectives.simple.network_factor"}};

core::Seconds microseconds(double us) { return core::Seconds{us * 1e-6}; }

}  // namespace

void FastestProtocol::note() const {
  Recording::note("latency of the fastest protocol", 1e6 * latency_.value, "us");
  Recording::note("data on the wire", 1e6 * wire_.value, "us");
}

std::array<Protocol, 3> protocols(const Curves& curves) {
  std::array<Protocol, 3> all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Keys& keys = protocol_keys[i];
    all[i].base = microseconds(curves.at(keys.base));
    all[i].hop_factor = curves.at(keys.hop_factor);
    all[i].payload = curves.at(keys.payload);
    all[i].ring_network = microseconds(curves.at(keys.ring_network));
    all[i].tree_network = microseconds(curves.at(keys.tree_network));
    all[i].network_factor = curves.at(keys.network_factor);
  }
  return all;
}

core::BytesPerSecond intra_rate(const core::GroupLinks& links, const Curves& curves) {
  return links.intra * curves.at(links.intra_nvlink ? "collectives.nvlink.efficiency"
                                                    : "collectives.pcie.efficiency");
}

core::BytesPerSecond inter_rate(const core::GroupLinks& links, const Curves& curves) {
  return links.inter * curves.at("collectives.nic.efficiency");
}

double fabric_share(const core::GroupLinks& links, const Curves& curves) {
  return interpolate(curves.list("collectives.ring.domains"),
                     curves.list("collectives.ring.domains_efficiency"),
                     static_cast<double>(links.domains));
}

core::BytesPerSecond nvls_rate(std::int64_t p, core::BytesPerSecond link, const Curves& curves) {
  const double efficiency = interpolate(curves.list("collectives.nvls.gpus"),
                                        curves.list("collectives.nvls.efficiency"),
                                        static_cast<double>(p));
  return link * (efficiency * static_cast<double>(p) / static_cast<double>(p + 1));
}

double interpolate(const std::vector<double>& points, const std::vector<double>& values, double x) {
  CORE_ASSERT(!points.empty() && points.size() == values.size());
  const auto above = std::ranges::upper_bound(points, x);
  if (above == points.begin()) return values.front();
  if (above == points.end()) return values.back();
  const auto i = static_cast<std::size_t>(above - points.begin());
  const double part = std::log(x / points[i - 1]) / std::log(points[i] / points[i - 1]);
  return values[i - 1] + part * (values[i] - values[i - 1]);
}

std::int64_t tree_levels(std::int64_t m) {
  std::int64_t levels = 0;
  while ((std::int64_t{1} << levels) < m) ++levels;
  return levels;
}

}  // namespace simulator

#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/hardware/topology.h"
#include "core/units.h"
#include "simulator/cost/cost.h"

namespace simulator {

// How NCCL moves bytes between neighbours: ll and ll128 trade bandwidth for latency by flags beside
// the data, simple moves whole buffers. NCCL runs the one that is fastest for the size. Constants:
// data/curves/collectives-<arch>.json, "collectives.<protocol>".
struct Protocol {
  core::Seconds base;          // once per operation
  double hop_factor = 1.0;     // latency of a hop inside a node, in GroupLinks::intra_latency
  double payload = 1.0;        // part of the link's rate that is data
  core::Seconds ring_network;  // software latency of a hop between nodes, ring
  core::Seconds tree_network;  // the same, tree
  double network_factor =
      1.0;  // crossings of the network a hop takes, in GroupLinks::inter_latency

  core::Seconds intra_hop(const core::GroupLinks& links) const {
    return links.intra_latency * hop_factor;
  }
  core::Seconds inter_hop(const core::GroupLinks& links, core::Seconds software) const {
    return software + links.inter_latency * network_factor;
  }
};

// What the fastest of the protocols takes: its latency, and its data on the wire.
class FastestProtocol {
 public:
  void take(core::Seconds latency, core::Seconds wire) {
    if (latency + wire < time()) latency_ = latency, wire_ = wire;
  }
  core::Seconds time() const { return latency_ + wire_; }
  void note() const;  // to a Recording

 private:
  core::Seconds latency_{std::numeric_limits<double>::infinity()}, wire_{0.0};
};

std::array<Protocol, 3> protocols(const Curves& curves);

// Rates that collectives reach, per member inside a domain and per group between domains.
core::BytesPerSecond intra_rate(const core::GroupLinks& links, const Curves& curves);
core::BytesPerSecond inter_rate(const core::GroupLinks& links, const Curves& curves);

// Part of the network's rate that is left with many domains: a fabric loses some to collisions.
double fabric_share(const core::GroupLinks& links, const Curves& curves);

// Rate at which NVLS reduces a buffer over p members under one switch. Each member sends its own n
// bytes and the n / p that it owns reduced: p / (p + 1) of the link times an efficiency by p.
core::BytesPerSecond nvls_rate(std::int64_t p, core::BytesPerSecond link, const Curves& curves);

// The curve `values` over `points` (ascending) at x, linear in log x, flat outside.
double interpolate(const std::vector<double>& points, const std::vector<double>& values, double x);

// Number of levels of a binary tree over m domains: log2 m, rounded up.
std::int64_t tree_levels(std::int64_t m);

}  // namespace simulator

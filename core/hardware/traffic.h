#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/hardware/topology.h"

namespace core::traffic {

enum class EdgeKind : std::uint8_t { nvlink, pcie, nic, leaf_uplink, spine_uplink };

using EdgeId = std::uint32_t;
using VertexId = std::uint32_t;

// An edge of the topology graph; a flow loads one of its two directions.
struct Edge {
  EdgeKind kind = EdgeKind::nvlink;
  double capacity = 0.0;  // bytes/s, each direction
  double latency = 0.0;   // seconds
};

// A NIC and the two edges that meet in it.
struct Nic {
  EdgeId host_edge = 0, leaf_edge = 0;
  VertexId leaf = 0;
};

// The routes of a topology graph, read off it once: which edge leads from each vertex towards the
// top.
struct Routes {
  const Cluster* cluster = nullptr;
  std::int64_t domain_gpus = 1;  // a domain: the GPUs of a node, or of several joined by NVLink
  std::vector<Edge> edges;
  std::vector<EdgeId> gpu_host_edge;    // by GPU
  std::vector<EdgeId> gpu_island_edge;  // by GPU; empty where no NVLink
  std::vector<Nic> nics;                // nics of node 0, then of node 1, ...
  std::vector<VertexId> parent;         // by vertex, for leaves and spines
  std::vector<EdgeId> parent_edge;
  std::vector<std::uint8_t> depth;  // 0 at the top
};

// The links that each group (or rank) of a family gets when all members of the family communicate
// at once. Few groups differ, so each names its class.
struct Family {
  std::vector<std::uint32_t> class_of;
  std::vector<GroupLinks> classes;
  const GroupLinks& of(std::int64_t index) const {
    return classes[class_of[static_cast<std::size_t>(index)]];
  }
};

// Groups {origin + tile * stride * size + i + k * stride : k < size}; index = tile * stride + i.
// Each group that spans domains circulates one unit of traffic from domain to domain (a ring, as a
// tree does up and down), spread evenly over the NICs of its members in each domain. With load(e)
// the units that cross edge e in its direction, a group's rate is the least capacity(e) / load(e)
// on its way, so that no edge carries more than its capacity.
Family groups(const Routes& routes, std::int64_t origin, std::int64_t stride, std::int64_t size);

// Each rank r sends to r + distance (where that is a rank); index = r.
Family pairs(const Routes& routes, std::int64_t distance);

}  // namespace core::traffic

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/hardware/hardware.h"

namespace core {

// What joins the members of a communication group when every group of its kind communicates at once
// (all data-parallel groups reduce together). Derived from the topology graph and the placement.
struct GroupLinks {
  std::int64_t size = 1;        // members
  std::int64_t domains = 1;     // NVLink domains (or nodes) that the group touches
  std::int64_t per_domain = 1;  // most members in one domain
  bool inside_nvlink = true;    // all members in one NVLink domain
  bool intra_nvlink = true;   // `intra` is NVLink's rate, else PCIe's
  bool switch_reduces = false;  // NVLS usable: inside one NVSwitch domain with NVLink SHARP
  bool domain_reduces = false;  // the part of the group in one domain could use NVLS
  BytesPerSecond intra;         // per member, one direction, inside a domain (NVLink or PCIe)
  BytesPerSecond inter;  // per *group*, one direction, between domains: the share of NICs, leaf
                         // and spine links that one group gets
  // As `inter`, but for traffic from each domain to all others alike (all-to-all) instead of round a
  // ring: where pods are joined by fewer links than they hold, more of it crosses them.
  BytesPerSecond exchange;
  Seconds intra_latency, inter_latency;
  std::string bottleneck;  // "nvlink" | "pcie" | "nic" | "leaf uplink" | "spine uplink"
  std::string says;        // "8 groups of 8, each across 8 nodes"
  bool operator==(const GroupLinks&) const = default;
};

// The cluster as a graph (Boost.Graph): GPUs, NVLink switches or pairs, hosts, NICs, leaves,
// spines, core; every edge with its capacity and latency. Built once for a cluster. Where only part
// of a pod is asked for, its uplinks shrink in proportion: the rest is taken to be used by others.
// Answers are kept by (stride, size); calls from several threads are safe.
class Topology {
 public:
  explicit Topology(const Cluster& cluster);
  ~Topology();
  Topology(Topology&&) noexcept;

  // Links of the group of ranks {first + i * stride : i < size} (as Megatron's rank order
  // produces), when all groups of that stride and size communicate at once. Requires first +
  // (size-1)*stride < gpus.
  GroupLinks group(std::int64_t first, std::int64_t stride, std::int64_t size) const;

  // Links between two ranks, when each pair (r, r + distance) communicates at once.
  GroupLinks pair(std::int64_t from, std::int64_t to) const;

  std::size_t vertices() const;
  std::size_t edges() const;
  const Cluster& cluster() const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace core

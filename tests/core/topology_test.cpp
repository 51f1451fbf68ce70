#include "core/hardware/topology.h"

#include <gtest/gtest.h>

#include <thread>

namespace core {
namespace {

constexpr double GBps = 1e9;

Cluster h100s(std::int64_t gpus) { return make_cluster("h100-sxm", gpus); }

// Pods of two nodes.
Cluster in_pods(std::int64_t gpus, double oversubscription) {
  Cluster cluster = h100s(gpus);
  cluster.pod_gpus = 16;
  cluster.oversubscription = oversubscription;
  return cluster;
}

TEST(Topology, PlacementDecidesTheLink) {
  // TP8 DP8 on 8 nodes of 8: ranks of one data-parallel group stand 8 apart.
  const GroupLinks across = Topology(h100s(64)).group(0, 8, 8);
  EXPECT_EQ(across.domains, 8);
  EXPECT_EQ(across.per_domain, 1);
  EXPECT_FALSE(across.inside_nvlink);
  EXPECT_EQ(across.bottleneck, "nic");
  EXPECT_EQ(across.says, "8 groups of 8, each across 8 nodes");
  // TP1 DP8 on one node.
  const GroupLinks inside = Topology(h100s(8)).group(0, 1, 8);
  EXPECT_EQ(inside.domains, 1);
  EXPECT_TRUE(inside.inside_nvlink);
  EXPECT_TRUE(inside.switch_reduces);
  EXPECT_EQ(inside.bottleneck, "nvlink");
  EXPECT_EQ(inside.says, "1 group of 8, inside one node");
}

// Two boards of 4: a ring for each of a board's members over a PCIe link of its own, within a board NVLink.
TEST(Topology, BoardsOfAServerAreJoinedByTheLinksOfTheirMembers) {
  Cluster cluster = h100s(8);
  cluster.node.nvlink_domain = 4;
  const double pcie = cluster.node.pcie_per_gpu.value, nvlink = cluster.node.nvlink_per_gpu.value;
  ASSERT_LT(4.0 * pcie, nvlink);
  const Topology topology(cluster);
  EXPECT_NEAR(topology.group(0, 1, 8).intra.value, 4.0 * pcie, 1);
  EXPECT_NEAR(topology.group(0, 2, 4).intra.value, 2.0 * pcie, 1);
  EXPECT_NEAR(topology.group(0, 4, 2).intra.value, pcie, 1);
  EXPECT_NEAR(topology.group(0, 1, 4).intra.value, nvlink, 1);
  EXPECT_FALSE(topology.group(0, 1, 8).inside_nvlink);
  // Bridged pairs have one link's rate.
  cluster.node.nvlink_domain = 2;
  EXPECT_NEAR(Topology(cluster).group(0, 1, 8).intra.value, pcie, 1);
}

TEST(Topology, SaysHowManyGroupsSpanWhat) {
  EXPECT_EQ(Topology(h100s(32)).group(0, 1, 8).says, "4 groups of 8, each inside one node");
  EXPECT_EQ(Topology(h100s(64)).group(8, 1, 8).says, "8 groups of 8, each inside one node");
  const GroupLinks small = Topology(h100s(32)).group(0, 1, 8);
  const GroupLinks large = Topology(h100s(64)).group(0, 1, 8);
  EXPECT_EQ(small.intra, large.intra);
}

TEST(Topology, GroupsShareTheNicsOfANode) {
  const Topology topology(h100s(64));
  EXPECT_NEAR(topology.group(0, 8, 8).inter.value, 50 * GBps, 1);       // 8 groups, 8 NICs
  EXPECT_NEAR(topology.group(0, 4, 16).inter.value, 100 * GBps, 1);     // 4 groups, 8 NICs
  EXPECT_NEAR(topology.group(0, 1, 64).inter.value, 8 * 50 * GBps, 1);  // 1 group has all
  EXPECT_EQ(topology.group(0, 1, 64).per_domain, 8);
}

TEST(Topology, GroupsShareANicWhereThereAreFewerNicsThanGpus) {
  Cluster cluster = h100s(64);
  cluster.node.nics = 4;
  const Topology topology(cluster);
  EXPECT_NEAR(topology.group(0, 8, 8).inter.value, 25 * GBps, 1);
  EXPECT_NEAR(topology.group(0, 1, 64).inter.value, 4 * 50 * GBps, 1);
  cluster.node.nics = 32;
  EXPECT_NEAR(Topology(cluster).group(0, 1, 64).inter.value, 8 * 63 * GBps, 1)
      << "more NICs than the PCIe links of 8 GPUs can feed";
}

TEST(Topology, SharesNeverExceedTheNicsOfANode) {
  for (int nics : {1, 2, 4, 8, 16}) {
    Cluster cluster = h100s(128);
    cluster.node.nics = nics;
    const Topology topology(cluster);
    for (std::int64_t stride : {1, 2, 4, 8, 16, 32}) {
      const std::int64_t size = 128 / stride;
      double sum = 0.0;  // groups that meet in node 0
      for (std::int64_t first = 0; first < std::min<std::int64_t>(stride, 8); ++first) {
        sum += topology.group(first, stride, size).inter.value;
      }
      EXPECT_LE(sum, nics * 50 * GBps * (1 + 1e-9)) << nics << " NICs, stride " << stride;
    }
  }
}

TEST(Topology, HalvingTheNicsHalvesTheShare) {
  Cluster cluster = h100s(64);
  for (std::int64_t stride : {1, 2, 4, 8}) {
    cluster.node.nics = 8;
    const double full = Topology(cluster).group(0, stride, 64 / stride).inter.value;
    cluster.node.nics = 4;
    const double half = Topology(cluster).group(0, stride, 64 / stride).inter.value;
    EXPECT_NEAR(half, full / 2, 1) << stride;
  }
}

TEST(Topology, OversubscriptionShowsOnlyAcrossPods) {
  const Topology even(in_pods(64, 1.0)), tapered(in_pods(64, 7.0));
  EXPECT_EQ(even.group(0, 8, 2).inter, tapered.group(0, 8, 2).inter);  // two nodes of a pod
  EXPECT_EQ(tapered.group(0, 8, 2).bottleneck, "nic");
  // Stride 16: each group has one member a pod, so all NICs talk across pods through 1/7 of them.
  const GroupLinks across = tapered.group(0, 16, 4);
  EXPECT_NEAR(across.inter.value, even.group(0, 16, 4).inter.value / 7, 1);
  EXPECT_EQ(across.bottleneck, "leaf uplink");
  // A ring through all nodes in order leaves a pod once per two nodes: 400 GB/s through 800 / 7.
  EXPECT_NEAR(tapered.group(0, 1, 64).inter.value, 2 * 400 * GBps / 7, 1);
}

// All-to-all over 8 nodes in 4 pods of 2: each node sends 6 of 7 parts beyond its pod, so that two nodes
// push 12/7 of a node's traffic through the pod's 800 / 7 GB/s.
TEST(Topology, AllToAllCrossesPodsMoreThanARing) {
  const Topology even(in_pods(64, 1.0)), tapered(in_pods(64, 7.0));
  EXPECT_EQ(even.group(0, 1, 64).exchange, even.group(0, 1, 64).inter);
  EXPECT_NEAR(tapered.group(0, 1, 64).exchange.value, 800 * GBps / 7 / (12.0 / 7), 1);
  EXPECT_LT(tapered.group(0, 1, 64).exchange, tapered.group(0, 1, 64).inter);
  // Inside a pod, and with one member a pod, there is no difference.
  EXPECT_NEAR(tapered.group(0, 1, 16).exchange.value, 400 * GBps, 1);
  EXPECT_NEAR(tapered.group(0, 16, 4).exchange.value, tapered.group(0, 16, 4).inter.value, 1);
}

TEST(Topology, PartOfAMeshGetsItsLinksOnly) {
  const Topology topology(load_cluster("perlmutter", 8));  // 3 x 100 GB/s, one to each peer
  EXPECT_NEAR(topology.group(0, 1, 4).intra.value, 300 * GBps, 1);
  EXPECT_NEAR(topology.group(0, 1, 2).intra.value, 100 * GBps, 1);
  EXPECT_NEAR(topology.pair(0, 1).intra.value, 100 * GBps, 1);
  EXPECT_NEAR(Topology(h100s(8)).group(0, 1, 2).intra.value, 450 * GBps, 1);  // a switch
}

TEST(Topology, ShippedPodsAreTapered) {
  const Topology topology(load_cluster("meta-24k-roce", 0));
  EXPECT_EQ(topology.group(0, 8, 384).bottleneck, "nic");           // one pod
  EXPECT_EQ(topology.group(0, 3072, 8).bottleneck, "leaf uplink");  // one member a pod
  EXPECT_NEAR(topology.group(0, 3072, 8).inter.value, 50 * GBps / 7, 1);
}

TEST(Topology, SpinesBindBetweenRegions) {
  Cluster cluster = in_pods(64, 1.0);
  cluster.region_gpus = 32;
  cluster.region_oversubscription = 4.0;
  const Topology topology(cluster);
  const GroupLinks links = topology.group(0, 32, 2);
  EXPECT_EQ(links.bottleneck, "spine uplink");
  EXPECT_NEAR(links.inter.value, 50 * GBps / 4, 1);
  EXPECT_GT(links.inter_latency, topology.group(0, 16, 2).inter_latency);
  EXPECT_GT(topology.group(0, 16, 2).inter_latency, topology.group(0, 8, 2).inter_latency);
}

TEST(Topology, RackKeeps64GpusInsideNvlink) {
  const Topology topology(load_cluster("gb200-nvl72-superpod", 0));
  const GroupLinks inside = topology.group(0, 1, 64);
  EXPECT_TRUE(inside.inside_nvlink);
  EXPECT_TRUE(inside.switch_reduces);
  EXPECT_EQ(inside.domains, 1);
  const GroupLinks across = topology.group(0, 72, 8);
  EXPECT_EQ(across.domains, 8);
  EXPECT_EQ(across.says, "72 groups of 8, each across 8 NVLink domains");
  EXPECT_NEAR(across.inter.value, 50 * GBps, 1);
  EXPECT_NEAR(topology.group(0, 1, 576).inter.value, 72 * 50 * GBps, 100);
}

TEST(Topology, PairsFallToPcieBeyondAPair) {
  const Topology topology(make_cluster("h100-pcie", 8));
  const GroupLinks pair = topology.group(0, 1, 2);
  EXPECT_TRUE(pair.inside_nvlink);
  EXPECT_NEAR(pair.intra.value, 300 * GBps, 1);
  const GroupLinks four = topology.group(0, 1, 4);
  EXPECT_FALSE(four.inside_nvlink);
  EXPECT_EQ(four.domains, 1);
  EXPECT_EQ(four.bottleneck, "pcie");
  EXPECT_NEAR(four.intra.value, 63 * GBps, 1);
  EXPECT_FALSE(topology.group(0, 2, 2).inside_nvlink);
  EXPECT_TRUE(topology.pair(0, 1).inside_nvlink);
  EXPECT_EQ(topology.pair(1, 2).bottleneck, "pcie");
  EXPECT_FALSE(four.switch_reduces);
}

TEST(Topology, OneMemberNeedsNoLink) {
  const GroupLinks alone = Topology(h100s(16)).group(3, 8, 1);
  EXPECT_EQ(alone.size, 1);
  EXPECT_EQ(alone.domains, 1);
}

TEST(Topology, PartlyUsedNodes) {
  const Topology topology(h100s(12));
  const GroupLinks links = topology.group(0, 1, 12);
  EXPECT_EQ(links.domains, 2);
  EXPECT_EQ(links.per_domain, 8);
  EXPECT_NEAR(links.inter.value, 4 * 50 * GBps, 1);  // the half-used node has four doors
  EXPECT_EQ(topology.group(0, 4, 3).domains, 2);
  EXPECT_EQ(Topology(h100s(3)).group(0, 1, 3).per_domain, 3);
}

TEST(Topology, SendsFromEachRankToTheRankADistanceAway) {
  const Topology topology(h100s(64));
  const GroupLinks far = topology.pair(0, 8);
  EXPECT_EQ(far.domains, 2);
  EXPECT_NEAR(far.inter.value, 50 * GBps, 1);
  EXPECT_EQ(far.bottleneck, "nic");
  EXPECT_TRUE(topology.pair(0, 4).inside_nvlink);
  EXPECT_EQ(topology.pair(4, 8).domains, 2);  // half of a node's ranks leave it
  EXPECT_NEAR(topology.pair(4, 8).inter.value, 50 * GBps, 1);
  EXPECT_EQ(topology.pair(8, 0).inter, topology.pair(0, 8).inter);
  EXPECT_EQ(topology.pair(5, 5).size, 1);
}

TEST(Topology, MoreOfAnythingNeverHurts) {
  for (std::int64_t stride : {1, 4, 8, 16}) {
    Cluster cluster = in_pods(64, 4.0);
    const auto share = [&] { return Topology(cluster).group(0, stride, 64 / stride).inter; };
    const BytesPerSecond base = share();
    cluster.node.nic_bandwidth = cluster.node.nic_bandwidth * 2;
    const BytesPerSecond wider = share();
    EXPECT_GE(wider, base);
    cluster.oversubscription = 2.0;
    const BytesPerSecond flatter = share();
    EXPECT_GE(flatter, wider);
    cluster.pod_gpus = 32;
    EXPECT_GE(share(), flatter);
  }
}

TEST(Topology, IsSmallAt16384Gpus) {
  Cluster cluster = h100s(16384);
  cluster.pod_gpus = 256;
  const Topology topology(cluster);
  // GPUs, NVLink switches, hosts, NICs, 64 pods of 8 leaves, one spine.
  EXPECT_EQ(topology.vertices(), 16384u + 2048u + 2048u + 16384u + 512u + 1u);
  // Each GPU to host and switch, each NIC to host and leaf, each leaf to the spine.
  EXPECT_EQ(topology.edges(), 4u * 16384u + 512u);
}

TEST(Topology, AnswersAlikeFromTwoThreads) {
  const Topology topology(h100s(256));
  const auto ask_all = [&](std::vector<GroupLinks>& answers) {
    for (std::int64_t stride = 1; stride <= 128; stride *= 2) {
      for (std::int64_t size = 2; stride * size <= 256; size *= 2) {
        answers.push_back(topology.group(0, stride, size));
      }
    }
  };
  std::vector<GroupLinks> here, there;
  std::thread other([&] { ask_all(there); });
  ask_all(here);
  other.join();
  EXPECT_EQ(here, there);
}

}  // namespace
}  // namespace core

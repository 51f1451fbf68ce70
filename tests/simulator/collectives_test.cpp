#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/hardware/topology.h"
#include "core/io/data_dir.h"
#include "simulator/cost/cost.h"
#include "simulator/cost/protocols.h"

namespace simulator {
namespace {

using core::Bytes;
using core::GroupLinks;
using core::OpKind;
using core::Topology;

constexpr double MiB = 1024.0 * 1024.0;
constexpr double huge_bytes = 1e15;  // latency vanishes

const CollectiveCost& algorithm(std::string_view name) {
  for (const CollectiveCost* each : collectives::all()) {
    if (each->name == name) return *each;
  }
  ADD_FAILURE() << "no algorithm " << name;
  return *collectives::all().front();
}

struct Case {
  Topology topology;
  Curves curves;
  explicit Case(const core::Cluster& cluster)
      : topology(cluster), curves(Curves::load(cluster.gpu)) {}
  double seconds(OpKind kind, double bytes, const GroupLinks& links) const {
    return collective_time(kind, Bytes{bytes}, links, curves).cost.time.value;
  }
  double seconds(std::string_view name, OpKind kind, double bytes, const GroupLinks& links) const {
    return algorithm(name).time({.kind = kind, .bytes = Bytes{bytes}}, links, curves)->time.value;
  }
};

Case h100s(std::int64_t gpus) { return Case(core::make_cluster("h100-sxm", gpus)); }

TEST(Collectives, AGroupOfOneCostsNothing) {
  const Case h = h100s(8);
  const CollectiveChoice choice =
      collective_time(OpKind::all_reduce, Bytes{1e9}, h.topology.group(0, 1, 1), h.curves);
  EXPECT_EQ(choice.cost.time.value, 0.0);
  EXPECT_EQ(choice.algorithm, "none");
}

TEST(Collectives, LargeRingsReachTheirShareOfTheLink) {
  const Case h = h100s(64);
  const double nvlink = 450e9 * h.curves.at("collectives.nvlink.efficiency");
  const GroupLinks node = h.topology.group(0, 1, 8);
  // 2 (p - 1) / p n / B, and half of it for one pass.
  EXPECT_NEAR(
      h.seconds("ring", OpKind::all_reduce, huge_bytes, node) / (2.0 * 7 / 8 * huge_bytes / nvlink),
      1.0,
      1e-6);
  EXPECT_NEAR(
      h.seconds("ring", OpKind::all_gather, huge_bytes, node) / (7.0 / 8 * huge_bytes / nvlink),
      1.0,
      1e-6);
  // One member a node, one 400G NIC each; 4 nodes lose nothing yet.
  const double nic = 50e9 * h.curves.at("collectives.nic.efficiency");
  EXPECT_NEAR(h.seconds("ring", OpKind::reduce_scatter, huge_bytes, h.topology.group(0, 8, 4)) /
                  (3.0 / 4 * huge_bytes / nic),
              1.0,
              1e-6);
}

TEST(Collectives, SmallRingsPayPerStep) {
  const Case h = h100s(8);
  const double base = h.curves.at("collectives.ll.base_us") * 1e-6;
  const auto latency = [&](std::int64_t p) {
    const GroupLinks links = h.topology.group(0, 1, p);
    return h.seconds("ring", OpKind::all_gather, 0.0, links) - base;
  };
  EXPECT_NEAR(latency(8), 7 * 1e-6, 1e-12);  // nvlink_latency_us of the node: 1
  EXPECT_NEAR(latency(8) / latency(2), 7.0, 1e-9);
  EXPECT_NEAR(h.seconds("ring", OpKind::all_reduce, 0.0, h.topology.group(0, 1, 8)) - base,
              14 * 1e-6,
              1e-12);
}

TEST(Collectives, TreesGrowWithTheLogarithmOfNodes) {
  const Case h = h100s(1024);
  const auto latency = [&](std::int64_t nodes) {
    return h.seconds("tree", OpKind::all_reduce, 0.0, h.topology.group(0, 8, nodes));
  };
  // Each doubling adds a level, up and down.
  EXPECT_NEAR(latency(8) - latency(4), latency(4) - latency(2), 1e-12);
  EXPECT_NEAR(latency(16) - latency(4), 2 * (latency(8) - latency(4)), 1e-12);
  EXPECT_GT(latency(16), latency(4));
  EXPECT_LT(h.seconds("tree", OpKind::all_reduce, 1024, h.topology.group(0, 8, 128)),
            h.seconds("ring", OpKind::all_reduce, 1024, h.topology.group(0, 8, 128)));
}

TEST(Collectives, NvlsAppliesInsideOneSwitchAndAboveAFewGpus) {
  const Case h = h100s(16);
  const auto applies = [&](const Case& on, OpKind kind, const GroupLinks& links) {
    return algorithm("nvls").time({.kind = kind, .bytes = Bytes{1e9}}, links, on.curves).has_value();
  };
  EXPECT_TRUE(applies(h, OpKind::all_reduce, h.topology.group(0, 1, 8)));
  EXPECT_FALSE(applies(h, OpKind::all_reduce, h.topology.group(0, 1, 4)));
  EXPECT_FALSE(applies(h, OpKind::all_gather, h.topology.group(0, 1, 8)));
  EXPECT_FALSE(applies(h, OpKind::all_reduce, h.topology.group(0, 1, 16)));
  const Case a(core::make_cluster("a100-sxm-80", 8));
  EXPECT_FALSE(applies(a, OpKind::all_reduce, a.topology.group(0, 1, 8)));
  EXPECT_EQ(collective_time(OpKind::all_reduce, Bytes{1e9}, h.topology.group(0, 1, 8), h.curves)
                .algorithm,
            "nvls");
}

TEST(Collectives, SeveralNodesMayReduceInLevels) {
  const Case h = h100s(128);
  const CollectiveChoice choice =
      collective_time(OpKind::all_reduce, Bytes{1e9}, h.topology.group(0, 1, 128), h.curves);
  EXPECT_EQ(choice.algorithm, "hierarchical");
  const double nics = 400e9 * h.curves.at("collectives.nic.efficiency");
  EXPECT_NEAR(
      h.seconds("hierarchical", OpKind::all_reduce, huge_bytes, h.topology.group(0, 1, 128)) /
          (2.0 * 15 / 16 * huge_bytes / nics),
      1.0,
      1e-6);
}

// Shares of n / 64 gathered over 8 nodes of 8: 7/8 n over the NICs of a node, then 7/8 n over NVLink.
TEST(Collectives, GathersMayPassInLevels) {
  const Case h = h100s(64);
  const GroupLinks links = h.topology.group(0, 1, 64);
  const auto seconds = [&](Levels levels, double bytes) {
    return collective_time({.kind = OpKind::all_gather, .bytes = Bytes{bytes}, .levels = levels},
                           links,
                           h.curves);
  };
  const double inside = 7.0 / 8 * huge_bytes / (450e9 * h.curves.at("collectives.nvlink.efficiency"));
  const double between = 7.0 / 8 * huge_bytes /
                         (400e9 * h.curves.at("collectives.nic.efficiency") *
                          fabric_share(links, h.curves));
  const CollectiveChoice two = seconds(Levels::two, huge_bytes);
  EXPECT_EQ(two.algorithm, "hierarchical");
  EXPECT_NEAR(two.cost.time.value / (inside + between), 1.0, 1e-6);
  // The rings overlap: NICs bind, and the last of 8 shares passes on inside alone.
  EXPECT_NEAR(seconds(Levels::overlapping, huge_bytes).cost.time.value / (between + inside / 8),
              1.0,
              1e-6);
  EXPECT_EQ(seconds(Levels::one, huge_bytes).algorithm, "ring");
  // Small ones pay 7 + 7 steps instead of 63.
  EXPECT_LT(seconds(Levels::two, 1e4).cost.time, seconds(Levels::one, 1e4).cost.time);
  // Inside one domain there is one level.
  EXPECT_EQ(collective_time({.kind = OpKind::all_gather, .bytes = Bytes{1e9}, .levels = Levels::two},
                            h.topology.group(0, 1, 8),
                            h.curves)
                .algorithm,
            "ring");
}

TEST(AllToAll, InsideANodeSendsAllButItsOwnShare) {
  const Case h = h100s(8);
  const double rate = 450e9 * h.curves.at("collectives.all_to_all.nvlink_efficiency");
  for (const std::int64_t p : {2, 4, 8}) {
    const double wire = huge_bytes * static_cast<double>(p - 1) / static_cast<double>(p);
    EXPECT_NEAR(h.seconds(OpKind::all_to_all, huge_bytes, h.topology.group(0, 1, p)) / (wire / rate),
                1.0,
                1e-6);
  }
}

// NCCL's rounds pass in lockstep: each of p - 1 takes what a pair across takes, over one NIC a GPU.
TEST(AllToAll, AcrossNodesAllRoundsTakeTheNetworksTime) {
  const Case h = h100s(32);
  const GroupLinks links = h.topology.group(0, 1, 32);
  const double nic = 50e9 * h.curves.at("collectives.all_to_all.nic_efficiency");
  EXPECT_NEAR(h.seconds(OpKind::all_to_all, huge_bytes, links) / (31.0 / 32 * huge_bytes / nic),
              1.0,
              1e-6);
}

TEST(AllToAll, GrowsWithBytesAndNeverBeatsTheWire) {
  for (const std::string& gpu : core::data_names("gpus")) {
    const Case c(core::make_cluster(gpu, 64));
    for (auto [stride, size] : {std::pair{1, 2}, {1, 8}, {1, 64}, {8, 8}, {4, 16}}) {
      const GroupLinks links = c.topology.group(0, stride, size);
      const double p = size, k = static_cast<double>(links.per_domain);
      double before = 0.0;
      for (double n = 1; n < 1e12; n *= 2) {
        const double t = c.seconds(OpKind::all_to_all, n, links);
        EXPECT_GE(t, before) << gpu << " " << n;
        if (links.domains == 1) {
          EXPECT_GE(t, n * (p - 1) / p / links.intra.value) << gpu;
        } else {
          EXPECT_GE(t, k * n * (p - k) / p / links.exchange.value) << gpu;
        }
        before = t;
      }
    }
  }
}

Collective tokens(double bytes, std::int64_t copies, std::int64_t most_domains = 0) {
  return {.kind = OpKind::all_to_all,
          .bytes = Bytes{bytes},
          .one_sided = true,
          .copies = copies,
          .most_domains = most_domains};
}

// 8 copies of a token over 64 ranks on 8 nodes, to at most 4: they meet d = 4 (1 - (3/4)^8) = 3.6 nodes,
// of which 7/8 are others, and one copy of all tokens crosses to each, from 8 GPUs over 8 NICs.
TEST(OneSided, OneCopyOfATokenCrossesToEachDomain) {
  const Case h = h100s(64);
  const GroupLinks links = h.topology.group(0, 1, 64);
  const double copy = huge_bytes / 8, nic = 50e9 * h.curves.at("collectives.one_sided.nic_efficiency");
  const auto seconds = [&](std::int64_t most) {
    const CollectiveChoice choice = collective_time(tokens(huge_bytes, 8, most), links, h.curves);
    EXPECT_EQ(choice.algorithm, "one_sided");
    return choice.cost.time.value;
  };
  const auto expected = [&](double domains) {
    return copy * domains * (1 - std::pow(1 - 1 / domains, 8)) * 7 / 8 / nic;
  };
  EXPECT_NEAR(seconds(4) / expected(4), 1.0, 1e-6);
  EXPECT_NEAR(seconds(0) / expected(8), 1.0, 1e-6);
  EXPECT_EQ(seconds(0), seconds(8));
  EXPECT_LT(seconds(4), seconds(0));
  // NCCL sends all 8 copies.
  EXPECT_LT(2 * seconds(4), h.seconds(OpKind::all_to_all, huge_bytes, links));
}

// Inside one node each token goes once to each rank that has one of its experts.
TEST(OneSided, InsideANodeRanksAreMetOnce) {
  const Case h = h100s(8);
  const double rate = 450e9 * h.curves.at("collectives.one_sided.nvlink_efficiency");
  const double ranks = 8 * (1 - std::pow(7.0 / 8, 6)) * 7 / 8;
  EXPECT_NEAR(collective_time(tokens(huge_bytes, 6), h.topology.group(0, 1, 8), h.curves).cost.time.value /
                  (huge_bytes / 6 * ranks / rate),
              1.0,
              1e-6);
}

// Few tokens are sent straight to their ranks: no exchange of counts first.
TEST(OneSided, FewTokensGoStraight) {
  const Case h = h100s(64);
  const GroupLinks links = h.topology.group(0, 1, 64);
  const double base = h.curves.at("collectives.one_sided.base_us") * 1e-6;
  const double out = 1e3 * 56 / 64 / (50e9 * h.curves.at("collectives.one_sided.nic_efficiency"));
  EXPECT_NEAR(collective_time(tokens(1e3, 8), links, h.curves).cost.time.value,
              base + links.inter_latency.value + out,
              1e-12);
}

TEST(OneSided, IsRefusedWhereTheGpuHasNoSuchKernels) {
  const Case v(core::make_cluster("v100-sxm-32", 8));
  try {
    collective_time(tokens(1e6, 2), v.topology.group(0, 1, 8), v.curves);
    FAIL();
  } catch (const core::InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("v100-sxm-32"), std::string::npos) << text;
    EXPECT_NE(text.find("collectives.one_sided."), std::string::npos) << text;
  }
}

TEST(Collectives, AreReadOffOperations) {
  core::OpSpec op;
  op.kind = OpKind::all_to_all;
  op.bytes = Bytes{3.0};
  op.n = 8;
  op.k = 4;
  EXPECT_FALSE(collective_of(op).one_sided);
  op.one_sided = true;
  EXPECT_EQ(collective_of(op).copies, 8);
  EXPECT_EQ(collective_of(op).most_domains, 4);
  EXPECT_EQ(transport_of(op), Transport::one_sided);
  op.one_sided = false;
  op.kind = OpKind::reduce_scatter;
  op.k = 2;
  EXPECT_EQ(collective_of(op).levels, Levels::overlapping);
  EXPECT_EQ(transport_of(op), Transport::nccl);
  op.kind = OpKind::copy_to_host;
  EXPECT_EQ(transport_of(op), Transport::copy_engine);
}

// NCCL holds SMs, one-sided kernels no more (as many in DeepEP's first version, on Hopper), copy engines none; kernels slow
// in that order.
TEST(Transports, HoldNoMoreSmsFromNcclToCopyEngines) {
  for (const char* gpu : {"h100-sxm", "b200"}) {
    const Curves curves = Curves::load(core::load_gpu(gpu));
    const Interference nccl = interference_of(Transport::nccl, curves);
    const Interference one_sided = interference_of(Transport::one_sided, curves);
    const Interference copies = interference_of(Transport::copy_engine, curves);
    EXPECT_GE(nccl.sms, one_sided.sms);
    EXPECT_GE(nccl.compute_slowdown, one_sided.compute_slowdown);
    EXPECT_GT(one_sided.compute_slowdown, copies.compute_slowdown);
    EXPECT_EQ(copies.sms, 0.0);
  }
}

TEST(Collectives, SendsPayOneLatencyAndTheLink) {
  const Case h = h100s(16);
  const GroupLinks inside = h.topology.pair(0, 1), across = h.topology.pair(0, 8);
  EXPECT_NEAR(h.seconds(OpKind::send_receive, huge_bytes, across) /
                  (huge_bytes / (50e9 * h.curves.at("collectives.send.nic_efficiency"))),
              1.0,
              1e-6);
  EXPECT_LT(h.seconds(OpKind::send_receive, MiB, inside),
            h.seconds(OpKind::send_receive, MiB, across));
}

// In a ring each member sends to the next. Of 4 members in each of two domains one sends to the other domain, as one rank of a
// pair does, though the group has four NICs there.
TEST(Collectives, ANeighboursSendHasOneMembersPartOfTheNetwork) {
  const Case h = h100s(16);
  const double pair = h.seconds(OpKind::send_receive, huge_bytes, h.topology.pair(0, 8));
  const GroupLinks ring = h.topology.group(0, 2, 8);
  ASSERT_EQ(ring.per_domain, 4);
  EXPECT_NEAR(h.seconds(OpKind::send_receive, huge_bytes, ring) / pair, 1.0, 1e-6);
  EXPECT_NEAR(h.seconds(OpKind::send_receive, huge_bytes, h.topology.group(0, 1, 4)) /
                  h.seconds(OpKind::send_receive, huge_bytes, h.topology.pair(0, 1)),
              1.0,
              1e-6);
}

double bus_bandwidth(const Case& c, std::int64_t size, double bytes) {
  const double p = static_cast<double>(size);
  const double t = c.seconds(OpKind::all_reduce, bytes, c.topology.group(0, 1, size));
  return 2.0 * (p - 1) / p * bytes / t / 1e9;
}

// Field case F58: four pairs of NVLink reduce at about 200 GB/s inside a pair and 20 beyond it.
TEST(Collectives, PairsOfNvlinkAreFastAloneOnly) {
  const Case c(core::make_cluster("a100-pcie-80", 8));
  EXPECT_NEAR(bus_bandwidth(c, 2, 1e9), 200, 60);
  EXPECT_NEAR(bus_bandwidth(c, 4, 1e9), 20, 6);
  EXPECT_NEAR(bus_bandwidth(c, 8, 1e9), 20, 6);
}

// Field case F59: nodes with 8 x 100 Gb/s allow a ring 100 GB/s from three nodes on; a model without that
// fabric's losses (58 at four nodes, measured) stays between. Two nodes are special.
TEST(Collectives, RingsAreBoundByTheNicsOfANode) {
  core::Cluster cluster = core::make_cluster("a100-sxm-80", 48);
  cluster.node.nic_bandwidth = core::BytesPerSecond{12.5e9};
  const Case c(cluster);
  for (const std::int64_t nodes : {3, 4, 5, 6}) {
    const double p = 8.0 * static_cast<double>(nodes);
    const double t = c.seconds("ring", OpKind::all_reduce, 4e9, c.topology.group(0, 1, 8 * nodes));
    EXPECT_LE(2.0 * (p - 1) / p * 4.0 / t, 100.0) << nodes;
    EXPECT_GE(2.0 * (p - 1) / p * 4.0 / t, 58.0) << nodes;
  }
  // Reducing inside the nodes first, as NCCL may, sends 1 / 8 of the bytes over the network: its bus
  // bandwidth exceeds the NICs by p - 1 over p / m (m - 1), most so at two nodes.
  EXPECT_GT(bus_bandwidth(c, 16, 4e9), bus_bandwidth(c, 24, 4e9));
  EXPECT_GT(bus_bandwidth(c, 24, 4e9), bus_bandwidth(c, 48, 4e9));
}

// Field case F60: an H100 PCIe with a bridge is another device than an H100 SXM (480 GB/s on 8).
TEST(Collectives, ABridgeIsNoNvswitch) {
  const Case pcie(core::make_cluster("h100-pcie", 8)), sxm(core::make_cluster("h100-sxm", 8));
  EXPECT_NEAR(bus_bandwidth(sxm, 8, 8e9), 480, 30);
  EXPECT_LT(bus_bandwidth(pcie, 2, 8e9), 0.6 * bus_bandwidth(sxm, 8, 8e9));
  EXPECT_LT(bus_bandwidth(pcie, 8, 8e9), 60);
}

TEST(Collectives, InterpolatesOverTheLogarithm) {
  const std::vector<double> points = {4, 16}, values = {1.0, 0.5};
  EXPECT_DOUBLE_EQ(interpolate(points, values, 2), 1.0);
  EXPECT_DOUBLE_EQ(interpolate(points, values, 8), 0.75);
  EXPECT_DOUBLE_EQ(interpolate(points, values, 64), 0.5);
  EXPECT_EQ(tree_levels(1), 0);
  EXPECT_EQ(tree_levels(2), 1);
  EXPECT_EQ(tree_levels(9), 4);
}

// What must cross a member's link inside its domain and the group's way between domains, whatever
// the algorithm: (k - 1) / k of the buffer inside, (m - 1) / m between, twice for an all-reduce
// unless the switch reduces.
double wire_bound(OpKind kind, double n, const GroupLinks& links) {
  const double k = static_cast<double>(links.per_domain), m = static_cast<double>(links.domains);
  if (kind == OpKind::send_receive) return n / (m > 1 ? links.inter : links.intra).value;
  const double passes = kind == OpKind::all_reduce ? 2.0 : 1.0;
  const double inside_passes = links.domain_reduces ? 1.0 : passes;
  const double inside = inside_passes * (k - 1) / k * n / links.intra.value;
  return m > 1 ? std::max(inside, passes * (m - 1) / m * n / links.inter.value) : inside;
}

TEST(Collectives, NeverBeatTheWireAndGrowWithBytes) {
  for (const std::string& gpu : core::data_names("gpus")) {
    const Case c(core::make_cluster(gpu, 64));
    for (OpKind kind : {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter}) {
      for (auto [stride, size] : {std::pair{1, 2}, {1, 4}, {1, 8}, {1, 64}, {8, 8}, {4, 16}}) {
        const GroupLinks links = c.topology.group(0, stride, size);
        double before = 0.0;
        for (double n = 1; n < 1e12; n *= 4) {
          const double t = c.seconds(kind, n, links);
          EXPECT_GE(t, wire_bound(kind, n, links)) << gpu << " " << n << " " << links.says;
          EXPECT_GE(t, before) << gpu << " " << n;
          before = t;
        }
      }
    }
    for (std::int64_t to : {1, 2, 8, 32}) {
      const GroupLinks links = c.topology.pair(0, to);
      for (double n = 1; n < 1e12; n *= 16) {
        EXPECT_GE(c.seconds(OpKind::send_receive, n, links),
                  wire_bound(OpKind::send_receive, n, links));
      }
    }
  }
}

TEST(Collectives, FewerNicsNeverMakeThemFaster) {
  core::Cluster cluster = core::make_cluster("h100-sxm", 64);
  double before = 0.0;
  for (int nics : {8, 4, 2, 1}) {
    cluster.node.nics = nics;
    const Case c(cluster);
    const double t = c.seconds(OpKind::reduce_scatter, 1e9, c.topology.group(0, 8, 8));
    EXPECT_GT(t, before);
    before = t;
  }
}

TEST(Collectives, SayWhetherTheirConstantsWereMeasuredOnThisGpu) {
  const auto origin = [](std::string_view gpu) {
    const Case c(core::make_cluster(gpu, 8));
    return collective_time(OpKind::all_gather, Bytes{1e6}, c.topology.group(0, 1, 8), c.curves)
        .cost.origin;
  };
  EXPECT_EQ(origin("h100-sxm"), Origin::fitted);
  EXPECT_EQ(origin("v100-sxm-32"), Origin::roofline);
}

}  // namespace
}  // namespace simulator

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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
    return algorithm(name).time(kind, Bytes{bytes}, links, curves)->time.value;
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
    return algorithm("nvls").time(kind, Bytes{1e9}, links, on.curves).has_value();
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

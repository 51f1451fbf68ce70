#include "core/hardware/hardware.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace core {
namespace {

using testing::TempDir;

std::string complaint_of(const auto& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

std::string written(const std::string& name, const std::string& text) {
  const std::string path = TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

void expect_names(const std::string& complaint, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(complaint.find(word), std::string::npos) << word << " not in: " << complaint;
  }
  EXPECT_EQ(complaint.find('\n'), std::string::npos) << complaint;
}

TEST(Hardware, ReadsAGpuWithUnits) {
  const Gpu gpu = load_gpu("h100-sxm");
  EXPECT_EQ(gpu.arch, "hopper");
  EXPECT_EQ(gpu.sms, 132);
  EXPECT_DOUBLE_EQ(gpu.peak("bf16")->value, 989.4e12);
  EXPECT_DOUBLE_EQ(gpu.memory_usable.value, 79.1 * gibibyte);
  EXPECT_DOUBLE_EQ(gpu.memory_bandwidth.value, 3352e9);
  EXPECT_DOUBLE_EQ(gpu.nvlink.value, 450e9);
}

TEST(Hardware, HasNoPeakWhereTheGpuHasNoFormat) {
  EXPECT_FALSE(load_gpu("v100-sxm-32").peak("bf16"));
  EXPECT_FALSE(load_gpu("a100-sxm-80").peak("fp8"));
  EXPECT_TRUE(load_gpu("h200-sxm").peak("fp8"));
}

TEST(Hardware, LoadsEveryGpuWithItsNodeAndPrice) {
  for (const std::string& name : data_names("gpus")) {
    const Cluster cluster = make_cluster(name, 8);
    EXPECT_EQ(cluster.gpu.name, name);
    EXPECT_EQ(cluster.node.gpu, name);
    EXPECT_GT(cluster.gpu.host_link.value, 0.0) << name;
    const std::optional<Price> price = load_price(name);
    EXPECT_EQ(price.has_value(), cluster.usd_per_gpu_hour.has_value()) << name;
    if (!price) continue;  // not every part is for rent
    EXPECT_LE(price->low.value, price->typical.value) << name;
    EXPECT_LE(price->typical.value, price->high.value) << name;
    EXPECT_DOUBLE_EQ(cluster.usd_per_gpu_hour->value, price->typical.value);
  }
}

// Field case F47: 9600 tokens/s of a 7B at .05 TFLOP a token on an H100 are 46 to 49 % of its peak, and
// 420 TFLOP/s on an H200 42.5 %: the dense peak, not the sparse one.
TEST(Hardware, PeaksAreDense) {
  EXPECT_NEAR(9600 * 0.05e12 / load_gpu("h100-sxm").peak("bf16")->value, 0.475, 0.015);
  EXPECT_NEAR(420e12 / load_gpu("h200-sxm").peak("bf16")->value, 0.425, 0.001);
  for (const std::string& name : data_names("gpus")) {
    const Gpu gpu = load_gpu(name);
    ASSERT_TRUE(gpu.peak("bf16") || gpu.peak("fp16")) << name;
    const double sixteen = gpu.peak(gpu.peak("bf16") ? "bf16" : "fp16")->value;
    EXPECT_LE(gpu.peak("fp8").value_or(FlopsPerSecond{0.0}).value, 2.05 * sixteen) << name;
    if (!gpu.peak("fp4")) continue;
    EXPECT_GT(gpu.peak("fp4")->value, gpu.peak("fp8")->value) << name;
  }
  EXPECT_FALSE(load_gpu("h100-sxm").peak("fp4"));
  EXPECT_TRUE(load_gpu("b200").peak("fp4"));
}

TEST(Hardware, HoldsTheDevicesOfSeveralVendors) {
  EXPECT_GE(data_names("gpus").size(), 42u);
  for (const char* name : {"mi300x", "gaudi3", "tpu-v5p", "trainium2", "l40s", "gh200-96", "b300"}) {
    EXPECT_EQ(make_cluster(name, 64).gpus, 64);
  }
  EXPECT_EQ(make_cluster("gb300", 144).node.nvlink_domain, 72);
}

TEST(Hardware, LoadsEveryNodeAndCluster) {
  for (const std::string& name : data_names("nodes")) EXPECT_GE(load_node(name).nics, 1) << name;
  for (const std::string& name : data_names("clusters")) {
    const Cluster cluster = load_cluster(name, 0);
    EXPECT_EQ(cluster.name, name);
    EXPECT_EQ(cluster.gpu.name, cluster.node.gpu);
    EXPECT_GE(cluster.oversubscription, 1.0);
  }
}

TEST(Hardware, EachShippedNumberSaysWhereItComesFrom) {
  const auto check = [](const auto& sources, const std::string& name) {
    EXPECT_FALSE(sources.empty()) << name;
    for (const auto& [key, figure] : sources) {
      EXPECT_FALSE(figure.source.empty()) << name << " " << key;
      EXPECT_NE(figure.checked, "given") << name << " " << key;
    }
  };
  for (const std::string& name : data_names("gpus")) check(load_gpu(name).sources, name);
  for (const std::string& name : data_names("nodes")) check(load_node(name).sources, name);
  for (const std::string& name : data_names("clusters")) check(load_cluster(name, 0).sources, name);
}

TEST(Hardware, RefusesAFamilyNameAndListsItsParts) {
  expect_names(complaint_of([] { load_gpu("h100"); }),
               {"--gpu h100", "h100-sxm", "h100-pcie", "h100-nvl"});
  expect_names(complaint_of([] { make_cluster("a100", 8); }), {"a100-sxm-40", "a100-pcie-80"});
}

TEST(Hardware, SuggestsTheNearestName) {
  expect_names(complaint_of([] { load_gpu("h100-smx"); }), {"--gpu", "h100-smx", "h100-sxm"});
  expect_names(complaint_of([] { load_cluster("selen", 0); }), {"--cluster", "selene"});
}

constexpr const char* own_cluster = R"({
  "node": {"like": "dgx-h100", "nics": 4, "nic_GBps": 25},
  "gpus": 64, "rail_optimised": false, "pod_gpus": 0, "oversubscription": 2,
  "usd_per_gpu_hour": 2.5})";

TEST(Hardware, TakesAUsersFileWithPlainNumbers) {
  const Cluster cluster = load_cluster(written("own.json", own_cluster), 32);
  EXPECT_EQ(cluster.name, "own");
  EXPECT_EQ(cluster.gpus, 32);
  EXPECT_EQ(cluster.nodes(), 4);
  EXPECT_EQ(cluster.node.nics, 4);
  EXPECT_DOUBLE_EQ(cluster.node.nic_bandwidth.value, 25e9);
  EXPECT_DOUBLE_EQ(cluster.node.nvlink_per_gpu.value, 450e9);
  EXPECT_DOUBLE_EQ(cluster.usd_per_gpu_hour->value, 2.5);
  EXPECT_EQ(cluster.usd_per_gpu_hour->checked, "given");
}

TEST(Hardware, NamesFileAndKeyOfAMisspelling) {
  const std::string path = written("misspelt.json", R"({
    "node": {"like": "dgx-h100", "nic_GBsp": 25}, "gpus": 64, "bandwith": 3})");
  expect_names(complaint_of([&] { load_cluster(path, 0); }), {"misspelt.json", "bandwith"});
  const std::string inner = written("inner.json", R"({
    "node": {"like": "dgx-h100", "nic_GBsp": 25}, "gpus": 64})");
  expect_names(complaint_of([&] { load_cluster(inner, 0); }),
               {"inner.json", "nic_GBsp", "nic_GBps"});
}

TEST(Hardware, NamesFileAndKeyOfWhatIsMissingOrWrong) {
  const auto complaint = [](const std::string& text) {
    const std::string path = written("wrong.json", text);
    return complaint_of([&] { load_cluster(path, 0); });
  };
  expect_names(
      complaint(R"({"node": "dgx-h100", "gpus": 8, "rail_optimised": true, "pod_gpus": 0})"),
      {"wrong.json", "oversubscription"});
  expect_names(complaint(R"({"node": "dgx-h100", "gpus": -1})"), {"wrong.json", "gpus", "-1"});
  expect_names(complaint(R"({"node": "dgx-h10", "gpus": 8})"), {"wrong.json", "node", "dgx-h100"});
  expect_names(complaint(R"({"node": {"like": "dgx-h100", "nvlink_domain": 3}, "gpus": 8})"),
               {"wrong.json", "nvlink_domain", "3"});
  expect_names(complaint(R"({"node": "dgx-h100", "gpus": {"value": 8, "checked": "seen"}})"),
               {"wrong.json", "gpus", "source"});
}

TEST(Hardware, HostLinkIsWhatTheNodeLeavesAGpu) {
  EXPECT_DOUBLE_EQ(load_gpu("a100-sxm-80").host_link.value, 31.5e9);
  // Two GPUs behind a PCIe switch; eight before 450 GB/s of host memory; a coherent link.
  EXPECT_DOUBLE_EQ(make_cluster("a100-sxm-80", 8).gpu.host_link.value, 15.75e9);
  EXPECT_DOUBLE_EQ(make_cluster("h100-sxm", 8).gpu.host_link.value, 450e9 / 8);
  EXPECT_TRUE(load_gpu("gb200").host_c2c);
  EXPECT_FALSE(load_gpu("b200").host_c2c);
  EXPECT_EQ(make_cluster("h100-sxm", 8).node.host_cores, 112);
  EXPECT_FALSE(make_cluster("h800-sxm", 8).node.host_cores);
}

TEST(Hardware, RefusesMoreGpusThanTheClusterHas) {
  expect_names(complaint_of([] { load_cluster("selene", 5000); }), {"--gpus 5000", "4480"});
  EXPECT_EQ(load_cluster("selene", 3072).nodes(), 384);
}

TEST(Hardware, LastNodeMayBePartlyUsed) {
  EXPECT_EQ(make_cluster("h100-sxm", 2).nodes(), 1);
  EXPECT_EQ(make_cluster("h100-sxm", 12).nodes(), 2);
  expect_names(complaint_of([] { make_cluster("h100-sxm", 0); }), {"--gpus 0"});
}

}  // namespace
}  // namespace core

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/hardware/figures.h"
#include "core/hardware/hardware.h"
#include "core/hardware/names.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace core {
namespace {

const std::vector<std::string_view> node_keys = {"title",
                                                 "gpu",
                                                 "gpus",
                                                 "nvlink_domain",
                                                 "nvlink_sharp",
                                                 "nvlink_GBps",
                                                 "nvlink_latency_us",
                                                 "pcie_GBps",
                                                 "pcie_latency_us",
                                                 "nics",
                                                 "nic_GBps",
                                                 "network_latency_us",
                                                 "network_tier_latency_us",
                                                 "nvlink_mesh",
                                                 "host_memory_GB",
                                                 "host_link_GBps",
                                                 "host_memory_GBps",
                                                 "host_cores"};
const std::vector<std::string_view> cluster_keys = {"title",
                                                    "notes",
                                                    "node",
                                                    "gpus",
                                                    "rail_optimised",
                                                    "pod_gpus",
                                                    "oversubscription",
                                                    "region_gpus",
                                                    "region_oversubscription",
                                                    "usd_per_gpu_hour"};

constexpr std::int64_t most_gpus = 1 << 22;

// Reads the keys that stand in `file` over `node`; with no node to start from every key must stand.
void read_node(const Document& file, bool partial, Node& node) {
  Figures figures(file, node.sources);
  const auto wanted = [&](std::string_view key) { return !partial || file.has(key); };
  const auto rate = [&](std::string_view key, BytesPerSecond& to) {
    if (wanted(key)) to = BytesPerSecond{figures.not_negative(key) * 1e9};
  };
  const auto latency = [&](std::string_view key, Seconds& to) {
    if (wanted(key)) to = Seconds{figures.not_negative(key) * 1e-6};
  };
  const auto count = [&](std::string_view key, std::int64_t low, std::int64_t high, int& to) {
    if (wanted(key)) to = static_cast<int>(figures.count(key, low, high));
  };
  if (wanted("gpu")) node.gpu = file.at("gpu").as_text();
  if (wanted("nvlink_sharp")) node.nvlink_sharp = file.at("nvlink_sharp").as_bool();
  if (file.has("nvlink_mesh")) node.nvlink_mesh = file.at("nvlink_mesh").as_bool();
  count("gpus", 1, 1024, node.gpus);
  count("nvlink_domain", 1, 16384, node.nvlink_domain);
  count("nics", 1, 1024, node.nics);
  rate("nvlink_GBps", node.nvlink_per_gpu);
  rate("pcie_GBps", node.pcie_per_gpu);
  rate("nic_GBps", node.nic_bandwidth);
  latency("nvlink_latency_us", node.nvlink_latency);
  latency("pcie_latency_us", node.pcie_latency);
  latency("network_latency_us", node.network_latency);
  latency("network_tier_latency_us", node.tier_latency);
  if (wanted("host_memory_GB")) {
    node.host_memory = Bytes{figures.positive("host_memory_GB") * 1e9};
  }
  rate("host_link_GBps", node.host_link_per_gpu);
  if (file.has("host_memory_GBps")) {
    node.host_memory_bandwidth = BytesPerSecond{figures.positive("host_memory_GBps") * 1e9};
  }
  if (file.has("host_cores")) {
    node.host_cores = static_cast<int>(figures.count("host_cores", 1, 65536));
  }
}

// Domains are whole nodes, or whole parts of one (pairs), so that a domain is found from a rank.
void check_domain(const Document& file, const Node& node) {
  const int domain = node.nvlink_domain;
  const bool fits = domain % node.gpus == 0 || node.gpus % domain == 0;
  if (fits) return;
  throw InputError(
      fmt::format("{}: nvlink_domain {} is neither a multiple nor a divisor of gpus {}",
                  file.where(),
                  domain,
                  node.gpus));
}

void check_rates(const Document& file, const Node& node) {
  const auto need = [&](bool good, std::string_view key) {
    if (!good) throw InputError(fmt::format("{}: {} must be positive", file.where(), key));
  };
  need(node.pcie_per_gpu.value > 0.0, "pcie_GBps");
  need(node.nic_bandwidth.value > 0.0, "nic_GBps");
  need(node.host_link_per_gpu.value > 0.0, "host_link_GBps");
  need(node.nvlink_domain == 1 || node.nvlink_per_gpu.value > 0.0, "nvlink_GBps");
}

// A node by name, or described in place over a named one ("like").
Node node_of(const Document& value) {
  if (!value.is_object()) return load_node(value.as_text(), value.where());
  std::vector<std::string_view> keys = node_keys;
  keys.push_back("like");
  value.reject_unknown(keys);
  Node node;
  const Document* like = value.find("like");
  if (like != nullptr) node = load_node(like->as_text(), like->where());
  read_node(value, like != nullptr, node);
  node.name = like != nullptr ? node.name + " (changed)" : "own node";
  check_domain(value, node);
  check_rates(value, node);
  return node;
}

// What a GPU's host link is worth in its node: never more than its own, nor than its part of the
// host's memory bandwidth.
void take_host_link(const Node& node, Gpu& gpu) {
  gpu.host_link = std::min(gpu.host_link, node.host_link_per_gpu);
  if (node.host_memory_bandwidth) {
    gpu.host_link = std::min(gpu.host_link, *node.host_memory_bandwidth * (1.0 / node.gpus));
  }
}

// A node's GPUs that are asked for share its memory.
void take_host_memory(Cluster& cluster) {
  const auto& bandwidth = cluster.node.host_memory_bandwidth;
  const auto sharing = std::min<std::int64_t>(cluster.node.gpus, cluster.gpus);
  if (bandwidth) cluster.gpu.host_memory_bandwidth = *bandwidth * (1.0 / static_cast<double>(sharing));
}

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".json");
}

void take_gpus(Cluster& cluster, std::int64_t wanted, std::string_view name) {
  if (wanted < 0 || wanted > cluster.gpus) {
    throw InputError(
        fmt::format("--gpus {}: the cluster {} has {} GPUs", wanted, name, cluster.gpus));
  }
  if (wanted > 0) cluster.gpus = wanted;
}

Cluster read_cluster(const Document& file, std::string_view name) {
  file.reject_unknown(cluster_keys);
  Cluster cluster;
  Figures figures(file, cluster.sources);
  cluster.name = name;
  cluster.node = node_of(file.at("node"));
  cluster.gpu = load_gpu(cluster.node.gpu, file.at("node").where());
  take_host_link(cluster.node, cluster.gpu);
  cluster.gpus = figures.count("gpus", 1, most_gpus);
  cluster.rail_optimised = file.at("rail_optimised").as_bool();
  cluster.pod_gpus = figures.count("pod_gpus", 0, most_gpus);
  cluster.oversubscription = figures.positive("oversubscription");
  cluster.region_gpus = figures.count_or("region_gpus", 0, most_gpus, 0);
  cluster.region_oversubscription = figures.positive_or("region_oversubscription", 1.0);
  if (file.has("usd_per_gpu_hour")) {
    cluster.usd_per_gpu_hour = figures.sourced("usd_per_gpu_hour");
  } else if (const std::optional<Price> price = load_price(cluster.gpu.name)) {
    cluster.usd_per_gpu_hour = price->typical;
  }
  return cluster;
}

}  // namespace

Node load_node(std::string_view name, std::string_view flag) {
  const Document file = Document::read_json_file(data_file("nodes", name, flag));
  file.reject_unknown(node_keys);
  if (const Document* title = file.find("title")) title->as_text();
  Node node;
  node.name = name;
  read_node(file, false, node);
  check_domain(file, node);
  check_rates(file, node);
  return node;
}

Cluster make_cluster(std::string_view gpu, std::int64_t gpus, std::string_view node) {
  if (gpus < 1 || gpus > most_gpus) {
    throw InputError(fmt::format("--gpus {}: expected 1 to {}", gpus, most_gpus));
  }
  Cluster cluster;
  cluster.gpu = load_gpu(gpu);
  cluster.node = node.empty() ? load_node(cluster.gpu.default_node, "default_node of " + cluster.gpu.name) : load_node(node);
  cluster.node.gpu = cluster.gpu.name;  // e.g. the 40 GB part in the node of the 80 GB part
  take_host_link(cluster.node, cluster.gpu);
  cluster.name = fmt::format("{} x {}", gpus, gpu);
  cluster.gpus = gpus;
  take_host_memory(cluster);
  if (const std::optional<Price> price = load_price(cluster.gpu.name)) {
    cluster.usd_per_gpu_hour = price->typical;
  }
  return cluster;
}

Cluster load_cluster(std::string_view name_or_path, std::int64_t gpus) {
  const std::filesystem::path path = is_path(name_or_path)
                                         ? std::filesystem::path(name_or_path)
                                         : data_file("clusters", name_or_path, "--cluster");
  Cluster cluster = read_cluster(Document::read_json_file(path), path.stem().string());
  take_gpus(cluster, gpus, name_or_path);
  take_host_memory(cluster);
  return cluster;
}

}  // namespace core

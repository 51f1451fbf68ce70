#include "simulator/check/cluster_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"

namespace simulator {

namespace {

struct GpuName {
  std::string_view source, ours;
  std::string_view assumed = "";  // where the source's name leaves the part open
};

constexpr std::array gpu_names = std::to_array<GpuName>({
    {"A100-80GB-SXM", "a100-sxm-80"},
    {"A100-80GB", "a100-sxm-80"},
    {"A100-40GB-SXM", "a100-sxm-40"},
    {"A100-SXM", "a100-sxm-80", "80 GB of memory"},
    {"A100", "a100-sxm-80", "80 GB of memory"},
    {"H100", "h100-sxm", "SXM with 80 GB"},
    {"H100-80GB", "h100-sxm"},
    {"H100-80GB-SXM", "h100-sxm"},
    {"H100-80GB-SXM-700W", "h100-sxm"},
    {"H100-96GB-HBM2e-500W", "h100-sxm-96"},
    {"H200-SXM", "h200-sxm"},
    {"H200-141GB-SXM", "h200-sxm"},
    {"H800-80GB-SXM", "h800-sxm"},
    {"B200", "b200"},
    {"B200-SXM", "b200"},
    {"B300", "b300"},
    {"GB200", "gb200"},
    {"GB300", "gb300"},
    {"V100-16GB-SXM2", "v100-sxm-16"},
    {"V100-32GB-SXM", "v100-sxm-32"},
    {"MI300X-192GB", "mi300x"},
    {"MI355X-288GB", "mi355x"},
    {"RTX4090-24GB", "rtx4090"},
});

// By a source's name for it, or by ours.
GpuName gpu_of(const core::MeasuredRun& run, const SourceFacts& facts) {
  if (!facts.gpu.empty()) return {run.gpu, facts.gpu};
  for (const auto& name : gpu_names) {
    if (name.source == run.gpu) return name;
  }
  try {
    core::load_gpu(run.gpu);
  } catch (const core::InputError&) {
    throw core::InputError(
        fmt::format("gpu {}: no part of data/gpus is known by this name", run.gpu));
  }
  return {run.gpu, run.gpu};
}

// Bandwidth for a GPU below one NIC's means that several share one. Ports of 100 Gb/s are those of
// the systems in question (Omni-Path, EDR and HDR100 InfiniBand).
constexpr double shared_port_gbps = 100.0;

void take_network(const core::MeasuredRun& run, core::Node& node) {
  if (!run.nic_gbps_per_gpu) return;
  const double gbps = *run.nic_gbps_per_gpu;
  if (gbps <= 0.0 || gbps > 1e6)
    throw core::InputError(fmt::format("nic_gbps_per_gpu {}: expected a positive number", gbps));
  const double port = gbps < shared_port_gbps ? shared_port_gbps : gbps;
  const double ports = gbps * node.gpus / port;  // at most as many as GPUs
  node.nics = std::max(1, static_cast<int>(std::lround(ports)));
  node.nic_bandwidth = core::BytesPerSecond{gbps * node.gpus / node.nics * 1e9 / 8.0};
}

// A rack of 72 is used by jobs of a power of two in parts of 64, so that no group of 64 crosses
// racks.
void take_domain(const core::MeasuredRun& run, core::Node& node, Notes& notes) {
  if (!run.nvlink_domain && node.nvlink_domain <= node.gpus) {
    node.nvlink_domain = std::min(node.nvlink_domain, node.gpus);
    return;
  }
  if (run.nvlink_domain)
    node.nvlink_domain = static_cast<int>(std::clamp<std::int64_t>(*run.nvlink_domain, 1, 16384));
  if (node.nvlink_domain == 72 && run.gpus.value_or(0) % 64 == 0) {
    node.nvlink_domain = 64;
    notes.assume("64 GPUs of each rack of 72");
  }
  const bool fits = node.nvlink_domain % node.gpus == 0 || node.gpus % node.nvlink_domain == 0;
  if (!fits) {
    throw core::InputError(
        fmt::format("nvlink_domain {} is neither a multiple nor a divisor of {} GPUs a node",
                    node.nvlink_domain,
                    node.gpus));
  }
}

// Servers that a GPU also comes in, by their GPUs: tables name no servers.
struct OtherNode {
  std::string_view gpu;
  int gpus;
  std::string_view node;
};
constexpr std::array other_nodes = std::to_array<OtherNode>({
    {"v100-sxm-32", 4, "jean-zay-v100"},
    {"v100-sxm-16", 4, "jean-zay-v100"},
    {"a100-sxm-40", 4, "perlmutter-gpu"},
});

// The server that holds so many of a GPU, "" for its usual one.
std::string_view node_of(std::string_view gpu, std::int64_t per_node) {
  for (const auto& other : other_nodes) {
    if (other.gpu == gpu && other.gpus == per_node) return other.node;
  }
  return "";
}

}  // namespace

core::Cluster cluster_of(const core::MeasuredRun& run, const SourceFacts& facts, Notes& notes) {
  if (!run.gpus || *run.gpus < 1) throw core::InputError("the number of GPUs is not stated");
  const GpuName name = gpu_of(run, facts);
  if (!name.assumed.empty())
    notes.assume(fmt::format("{} is {}: {}", run.gpu, name.ours, name.assumed));
  // A row of one GPU says that the node has one: no link of it is used.
  const auto stated = run.gpus_per_node.value_or(0);
  const bool known = !facts.node.empty();
  const auto other = known ? std::string_view(facts.node) : stated > 1 ? node_of(name.ours, stated) : std::string_view();
  if (!other.empty()) notes.assume(fmt::format("a server such as {}", other));
  core::Cluster cluster = core::make_cluster(name.ours, *run.gpus, other);
  core::Node& node = cluster.node;
  const auto per_node = run.gpus_per_node.value_or(node.gpus);
  if (per_node > 1) node.gpus = static_cast<int>(std::min<std::int64_t>(per_node, 1024));
  if (!known && (per_node > 1 || !run.gpus_per_node)) {
    take_domain(run, node, notes);
    take_network(run, node);
  }
  if (run.gpu_power_w &&
      std::abs(static_cast<double>(*run.gpu_power_w) - cluster.gpu.tdp_W) > 1.0) {
    notes.ignore(fmt::format("power limit of {} W; {} is rated at {:.0f} W",
                             *run.gpu_power_w,
                             cluster.gpu.name,
                             cluster.gpu.tdp_W));
  }
  return cluster;
}

}  // namespace simulator

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"

namespace core {

// A figure of a data file with where it came from.
struct Sourced {
  double value = 0.0;
  std::string source;
  std::string checked;  // seen | recalled | derived | estimate
};

// A GPU as in data/gpus/NAME.json, or another accelerator: SMs stand for compute units, tensor
// processor cores or matrix units, NVLink for whatever joins the devices of a node. Rates are dense.
struct Gpu {
  std::string name;          // "h100-sxm"
  std::string title;         // "NVIDIA H100 SXM5 80GB"
  std::string default_node;  // its usual server, a name of data/nodes
  std::string arch;          // "volta", "ampere", "cdna3", "gaudi", ...; key of data/curves
  int sms = 0;
  std::map<std::string, double> dense_tflops;  // by format: fp32, tf32, fp16, bf16, fp8, fp4
  Bytes memory_usable;                         // what the driver reports
  BytesPerSecond memory_bandwidth;
  Bytes l2;
  BytesPerSecond nvlink;  // one direction; 0 = none
  BytesPerSecond pcie;    // one direction
  // To and from host memory, one direction, while all GPUs of the node copy: of its own file, or in
  // a cluster what the node leaves it (shared PCIe switches, host memory bandwidth).
  BytesPerSecond host_link;
  // In a cluster, its part of the bandwidth of its node's host memory while all GPUs that are asked for use it; where known.
  std::optional<BytesPerSecond> host_memory_bandwidth;
  bool host_c2c = false;  // the host link is coherent (NVLink-C2C), not PCIe
  double tdp_W = 0.0;
  std::vector<std::pair<std::string, Sourced>> sources;  // key -> figure with its source

  // Dense peak of a format; nothing where the GPU has none (bf16 on V100, fp8 on A100).
  std::optional<FlopsPerSecond> peak(std::string_view format) const;
};

// A server as in data/nodes/NAME.json.
struct Node {
  std::string name, gpu;
  int gpus = 0;  // GPUs a server
  // GPUs that NVLink joins: gpus, or 72 for NVL72 racks; 1 = PCIe only; 2 = pairs.
  int nvlink_domain = 0;
  bool nvlink_sharp = false;      // NVLS: the switch reduces
  bool nvlink_mesh = false;       // a link for each pair, no switch: part of a domain gets part of the rate
  BytesPerSecond nvlink_per_gpu;  // one direction
  BytesPerSecond pcie_per_gpu;    // one direction
  Seconds nvlink_latency;         // one hop between two GPUs, the lowest protocol
  Seconds pcie_latency;           // the same over PCIe
  int nics = 0;
  BytesPerSecond nic_bandwidth;  // each, one direction
  Seconds network_latency;       // one hop, small message
  Seconds tier_latency;          // more for each link above the leaves
  Bytes host_memory;
  BytesPerSecond host_link_per_gpu;  // one direction, while all GPUs of the node copy
  std::optional<BytesPerSecond> host_memory_bandwidth;  // of the node, as STREAM's triad; where known
  std::optional<int> host_cores;                        // of the node, where known
  std::vector<std::pair<std::string, Sourced>> sources;
};

// A cluster as in data/clusters/NAME.json: nodes joined by a leaf/spine network.
struct Cluster {
  std::string name;
  Gpu gpu;
  Node node;
  std::int64_t gpus = 0;          // as asked for
  bool rail_optimised = true;     // NIC i of each node of a pod goes to leaf i
  std::int64_t pod_gpus = 0;      // GPUs under one set of leaves; 0 = all
  double oversubscription = 1.0;  // leaf down : up
  std::int64_t region_gpus = 0;   // GPUs under one set of spines; 0 = all (no third tier)
  double region_oversubscription = 1.0;
  std::optional<Sourced> usd_per_gpu_hour;
  std::vector<std::pair<std::string, Sourced>> sources;
  std::int64_t nodes() const { return (gpus + node.gpus - 1) / node.gpus; }
};

// Rental prices of a GPU as in data/prices/NAME.json.
struct Price {
  Sourced low, typical, high;  // USD per GPU and hour
  std::string date;            // of the newest observation
};

// Each loader throws InputError naming file and key (or the flag, with the nearest known name).
Gpu load_gpu(std::string_view name, std::string_view flag = "--gpu");
Node load_node(std::string_view name, std::string_view flag = "node");
// Nothing where no price is known.
std::optional<Price> load_price(std::string_view gpu);

// `--gpu NAME --gpus N` without a cluster: the GPU's usual node under a full-bisection network
// (`"default_node"` of the GPU's file), or with `node` for it. Throws InputError.
Cluster make_cluster(std::string_view gpu, std::int64_t gpus, std::string_view node = "");
// `--cluster NAME|FILE`. `gpus` 0 = all it has. A file of the user's may write plain numbers where
// ours write {value, source, checked}, and describe its node in place: "node": {"like": "dgx-h100",
// "nics": 4}.
Cluster load_cluster(std::string_view name_or_path, std::int64_t gpus);

}  // namespace core

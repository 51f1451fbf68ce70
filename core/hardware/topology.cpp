#include "core/hardware/topology.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <tuple>

#include "core/error.h"
#include "core/hardware/traffic.h"

namespace core {
namespace {

enum class VertexKind : std::uint8_t { gpu, nvlink_switch, host, nic, leaf, spine, core };

struct Link {
  traffic::EdgeId id = 0;
};

using Network =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, VertexKind, Link>;
using Vertex = boost::graph_traits<Network>::vertex_descriptor;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t or_all(std::int64_t part, std::int64_t all) { return part == 0 ? all : part; }

// Writes the graph of a cluster tier by tier, from the GPUs up.
class Builder {
 public:
  Builder(const Cluster& cluster, Network& network, traffic::Routes& routes)
      : cluster_(cluster), node_(cluster.node), network_(network), routes_(routes) {}

  // Returns the topmost vertex.
  Vertex build() {
    reserve();
    add_servers();
    add_nics();
    return add_switches();
  }

 private:
  using Kind = traffic::EdgeKind;

  // The first topology of a program spends half its time on fresh memory; growing twice doubles
  // that.
  void reserve() {
    const std::size_t gpus = at(cluster_.gpus), nics = at(cluster_.nodes() * node_.nics);
    network_.m_vertices.reserve(gpus + nics + gpus / 2);
    routes_.edges.reserve(2 * gpus + 2 * nics + gpus / 8);
    routes_.gpu_host_edge.reserve(gpus);
    routes_.gpu_island_edge.reserve(gpus);
    routes_.nics.reserve(nics);
  }

  Vertex add_vertex(VertexKind kind) { return boost::add_vertex(kind, network_); }

  traffic::EdgeId add_edge(Vertex a, Vertex b, Kind kind, double capacity, double latency) {
    const auto id = static_cast<traffic::EdgeId>(routes_.edges.size());
    routes_.edges.push_back({kind, capacity, latency});
    boost::add_edge(a, b, Link{id}, network_);
    return id;
  }

  void add_servers() {
    for (std::int64_t g = 0; g < cluster_.gpus; ++g) add_vertex(VertexKind::gpu);
    const std::int64_t island = node_.nvlink_domain;
    for (std::int64_t g = 0; g < cluster_.gpus; ++g) {
      if (g % node_.gpus == 0) hosts_.push_back(add_vertex(VertexKind::host));
      routes_.gpu_host_edge.push_back(add_edge(at(g),
                                               hosts_.back(),
                                               Kind::pcie,
                                               node_.pcie_per_gpu.value,
                                               node_.pcie_latency.value / 2));
      if (island < 2) continue;
      if (g % island == 0) islands_.push_back(add_vertex(VertexKind::nvlink_switch));
      routes_.gpu_island_edge.push_back(add_edge(at(g),
                                                 islands_.back(),
                                                 Kind::nvlink,
                                                 node_.nvlink_per_gpu.value,
                                                 node_.nvlink_latency.value / 2));
    }
  }

  void add_nics() {
    for (Vertex host : hosts_) {
      for (int i = 0; i < node_.nics; ++i) {
        nics_.push_back(add_vertex(VertexKind::nic));
        traffic::Nic nic;
        nic.host_edge = add_edge(nics_.back(), host, Kind::nic, node_.nic_bandwidth.value, 0.0);
        routes_.nics.push_back(nic);
      }
    }
  }

  Vertex add_switches() {
    const std::int64_t pod = or_all(cluster_.pod_gpus, cluster_.gpus);
    const std::int64_t region = or_all(cluster_.region_gpus, cluster_.gpus);
    std::vector<Vertex> spines;
    for (std::int64_t r = 0; r < ceil_div(cluster_.gpus, region); ++r) {
      spines.push_back(add_vertex(VertexKind::spine));
    }
    std::vector<double> uplinks(spines.size(), 0.0);
    for (std::int64_t first = 0; first < cluster_.gpus; first += pod) {
      const std::size_t r = at(first / region);
      uplinks[r] += add_pod(first, std::min(first + pod, cluster_.gpus), spines[r]);
    }
    if (spines.size() == 1) return spines.front();
    const Vertex core = add_vertex(VertexKind::core);
    for (std::size_t r = 0; r < spines.size(); ++r) {
      const double capacity = uplinks[r] / cluster_.region_oversubscription;
      add_edge(spines[r], core, Kind::spine_uplink, capacity, node_.tier_latency.value);
    }
    return core;
  }

  // The leaves over the nodes that start in [first, last) and their uplinks; returns the uplinks'
  // sum.
  double add_pod(std::int64_t first, std::int64_t last, Vertex spine) {
    const std::int64_t from = ceil_div(first, node_.gpus), to = ceil_div(last, node_.gpus);
    const int rails = cluster_.rail_optimised ? node_.nics : 1;
    const double attached =
        static_cast<double>((to - from) * (node_.nics / rails)) * node_.nic_bandwidth.value;
    const double uplink = attached / cluster_.oversubscription;
    for (int rail = 0; rail < rails; ++rail) {
      const Vertex leaf = add_vertex(VertexKind::leaf);
      for (std::int64_t n = from; n < to; ++n) attach(leaf, n, rail, rails);
      add_edge(leaf, spine, Kind::leaf_uplink, uplink, node_.tier_latency.value);
    }
    return uplink * rails;
  }

  void attach(Vertex leaf, std::int64_t node, int rail, int rails) {
    for (int i = rail; i < node_.nics; i += rails) {
      const std::size_t n = at(node * node_.nics + i);
      routes_.nics[n].leaf = static_cast<traffic::VertexId>(leaf);
      routes_.nics[n].leaf_edge = add_edge(
          nics_[n], leaf, Kind::nic, node_.nic_bandwidth.value, node_.network_latency.value / 2);
    }
  }

  const Cluster& cluster_;
  const Node& node_;
  Network& network_;
  traffic::Routes& routes_;
  std::vector<Vertex> hosts_, islands_, nics_;
};

// Notes, for each vertex that the search from the top reaches, its depth and the edge that leads
// up.
class ReadRoutes : public boost::default_bfs_visitor {
 public:
  explicit ReadRoutes(traffic::Routes& routes) : routes_(routes) {}

  template <typename Edge>
  void tree_edge(const Edge& edge, const Network& network) const {
    const Vertex up = boost::source(edge, network), down = boost::target(edge, network);
    routes_.parent[down] = static_cast<traffic::VertexId>(up);
    routes_.parent_edge[down] = network[edge].id;
    routes_.depth[down] = static_cast<std::uint8_t>(routes_.depth[up] + 1);
  }

 private:
  traffic::Routes& routes_;
};

}  // namespace

struct Topology::Graph {
  Cluster cluster;
  Network network;
  traffic::Routes routes;

  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  mutable std::shared_mutex mutex;
  mutable std::map<Key, std::shared_ptr<const traffic::Family>> families;

  explicit Graph(const Cluster& of) : cluster(of) {
    routes.cluster = &cluster;
    routes.domain_gpus = std::max(cluster.node.gpus, cluster.node.nvlink_domain);
    const Vertex top = Builder(cluster, network, routes).build();
    const std::size_t count = boost::num_vertices(network);
    routes.parent.assign(count, 0);
    routes.parent_edge.assign(count, 0);
    routes.depth.assign(count, 0);
    boost::breadth_first_search(network, top, boost::visitor(ReadRoutes(routes)));
  }

  template <typename Make>
  std::shared_ptr<const traffic::Family> family(const Key& key, const Make& make) const {
    {
      const std::shared_lock lock(mutex);
      const auto found = families.find(key);
      if (found != families.end()) return found->second;
    }
    auto made = std::make_shared<const traffic::Family>(make());
    const std::unique_lock lock(mutex);
    return families.try_emplace(key, std::move(made)).first->second;
  }
};

Topology::Topology(const Cluster& cluster) : graph_(std::make_unique<Graph>(cluster)) {}
Topology::~Topology() = default;
Topology::Topology(Topology&&) noexcept = default;

GroupLinks Topology::group(std::int64_t first, std::int64_t stride, std::int64_t size) const {
  CORE_ASSERT(first >= 0 && stride >= 1 && size >= 1);
  CORE_ASSERT(first + (size - 1) * stride < graph_->cluster.gpus);
  const std::int64_t tile = stride * size;
  const std::int64_t origin = first / stride * stride % tile;
  const auto family = graph_->family({stride, size, origin}, [&] {
    return traffic::groups(graph_->routes, origin, stride, size);
  });
  return family->of((first - origin) / tile * stride + first % stride);
}

GroupLinks Topology::pair(std::int64_t from, std::int64_t to) const {
  const std::int64_t gpus = graph_->cluster.gpus;
  CORE_ASSERT(from >= 0 && from < gpus && to >= 0 && to < gpus);
  const auto family =
      graph_->family({0, 0, to - from}, [&] { return traffic::pairs(graph_->routes, to - from); });
  return family->of(from);
}

std::size_t Topology::vertices() const { return boost::num_vertices(graph_->network); }
std::size_t Topology::edges() const { return boost::num_edges(graph_->network); }
const Cluster& Topology::cluster() const { return graph_->cluster; }

}  // namespace core

#include "core/hardware/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "core/error.h"

namespace core::traffic {
namespace {

constexpr std::array<std::string_view, 5> kind_names = {
    "nvlink", "pcie", "nic", "leaf uplink", "spine uplink"};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// A NIC with the GPU that feeds it.
struct Door {
  std::int64_t gpu = 0;
  std::int64_t nic = 0;
};

// The members of a group in one domain.
struct Part {
  std::int64_t domain = 0;
  std::int64_t members = 0;
  std::vector<Door> doors{};
};

// NICs near a GPU: its own one or several, or the one it shares.
void add_doors(const Routes& routes, std::int64_t gpu, std::vector<Door>& doors) {
  const Node& node = routes.cluster->node;
  const std::int64_t base = gpu / node.gpus * node.nics;
  const std::int64_t local = gpu % node.gpus;
  const std::int64_t first = local * node.nics / node.gpus;
  const std::int64_t last = std::max(first + 1, (local + 1) * node.nics / node.gpus);
  for (std::int64_t nic = base + first; nic < base + last; ++nic) {
    const bool seen = !doors.empty() && doors.back().nic == nic;
    if (!seen) doors.push_back({gpu, nic});
  }
}

// The same rail's NIC in the node of `gpu`: with NVLink through the whole node a sender hands its
// data to the GPU beside the NIC on the receiver's rail, so that the flow stays under one leaf.
std::int64_t nic_on_rail(const Routes& routes, std::int64_t gpu, std::int64_t rail_of_nic) {
  const Node& node = routes.cluster->node;
  return gpu / node.gpus * node.nics + rail_of_nic % node.nics;
}

// Calls visit(edge, direction) for each edge from one door to another: up 0, down 1.
template <typename Visit>
void walk(const Routes& routes, const Door& from, const Door& to, const Visit& visit) {
  const Nic& out = routes.nics[at(from.nic)];
  const Nic& in = routes.nics[at(to.nic)];
  visit(routes.gpu_host_edge[at(from.gpu)], 0);
  visit(out.host_edge, 0);
  visit(out.leaf_edge, 0);
  VertexId a = out.leaf, b = in.leaf;
  while (a != b) {
    if (routes.depth[a] >= routes.depth[b]) {
      visit(routes.parent_edge[a], 0);
      a = routes.parent[a];
    } else {
      visit(routes.parent_edge[b], 1);
      b = routes.parent[b];
    }
  }
  visit(in.leaf_edge, 1);
  visit(in.host_edge, 1);
  visit(routes.gpu_host_edge[at(to.gpu)], 1);
}

// Units of traffic on each direction of each edge, and what one flow gets under them.
class Loads {
 public:
  explicit Loads(const Routes& routes) : routes_(routes), load_(2 * routes.edges.size(), 0.0) {}

  void add(const Door& from, const Door& to, double units) {
    walk(routes_, from, to, [&](EdgeId e, int way) { load_[2 * e + at(way)] += units; });
  }

  void add(EdgeId e, int way, double units) { load_[2 * e + at(way)] += units; }
  double rate(EdgeId e, int way) const {
    return routes_.edges[e].capacity / load_[2 * e + at(way)];
  }

  struct Share {
    double rate = std::numeric_limits<double>::infinity();
    double latency = 0.0;
    EdgeKind bottleneck = EdgeKind::nic;
  };

  // Lowers `share` to what the way between two doors allows.
  void limit(const Door& from, const Door& to, Share& share) const {
    double latency = 0.0;
    walk(routes_, from, to, [&](EdgeId e, int way) {
      const Edge& edge = routes_.edges[e];
      if (edge.kind != EdgeKind::pcie) latency += edge.latency;
      const double rate = edge.capacity / load_[2 * e + at(way)];
      if (rate < share.rate * (1.0 - 1e-9)) {
        share.rate = rate;
        share.bottleneck = edge.kind;
      }
    });
    share.latency = std::max(share.latency, latency);
  }

 private:
  static std::size_t at(int way) { return static_cast<std::size_t>(way); }
  const Routes& routes_;
  std::vector<double> load_;
};

// Calls visit(from, to, units) for the channels of one unit of traffic between two parts.
template <typename Visit>
void channels(const Part& from, const Part& to, const Visit& visit) {
  const std::size_t count = std::max(from.doors.size(), to.doors.size());
  for (std::size_t i = 0; i < count; ++i) {
    visit(from.doors[i * from.doors.size() / count],
          to.doors[i * to.doors.size() / count],
          1.0 / static_cast<double>(count));
  }
}

std::vector<Part> parts_of(const Routes& routes,
                           std::int64_t first,
                           std::int64_t stride,
                           std::int64_t size) {
  std::vector<Part> parts;
  for (std::int64_t k = 0; k < size; ++k) {
    const std::int64_t gpu = first + k * stride;
    const std::int64_t domain = gpu / routes.domain_gpus;
    if (parts.empty() || parts.back().domain != domain) parts.push_back({.domain = domain});
    ++parts.back().members;
    add_doors(routes, gpu, parts.back().doors);
  }
  return parts;
}

template <typename Visit>
void ring_flows(const std::vector<Part>& parts, const Visit& visit) {
  if (parts.size() < 2) return;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    channels(parts[i], parts[(i + 1) % parts.size()], visit);
  }
}

// Calls visit(edge, direction, units) for what a group adds to each edge when its parts send to all
// others alike, one unit a part: all of it passes the doors, and above each switch only what is for
// parts beyond it.
template <typename Visit>
void exchange_flows(const Routes& routes, const std::vector<Part>& parts, const Visit& visit) {
  if (parts.size() < 2) return;
  std::size_t count = 0;
  for (const Part& part : parts) count = std::max(count, part.doors.size());
  const auto door_of = [&](const Part& part, std::size_t channel) {
    return part.doors[channel * part.doors.size() / count];
  };
  const double unit = 1.0 / static_cast<double>(count);
  const double others = static_cast<double>(parts.size() - 1);
  for (std::size_t channel = 0; channel < count; ++channel) {
    std::map<VertexId, std::size_t> below;  // parts under a switch
    const auto climb = [&](const Part& part, const auto& each) {
      VertexId at_switch = routes.nics[at(door_of(part, channel).nic)].leaf;
      for (; routes.depth[at_switch] > 0; at_switch = routes.parent[at_switch]) each(at_switch);
    };
    for (const Part& part : parts) climb(part, [&](VertexId v) { ++below[v]; });
    for (const Part& part : parts) {
      const Door door = door_of(part, channel);
      const Nic& nic = routes.nics[at(door.nic)];
      for (int way : {0, 1}) {
        visit(routes.gpu_host_edge[at(door.gpu)], way, unit);
        visit(nic.host_edge, way, unit);
        visit(nic.leaf_edge, way, unit);
      }
      climb(part, [&](VertexId v) {
        const double beyond = static_cast<double>(parts.size() - below[v]) / others;
        if (beyond <= 0.0) return;
        for (int way : {0, 1}) visit(routes.parent_edge[v], way, unit * beyond);
      });
    }
  }
}

// True where NVLink joins every member to the others in its domain.
bool joined_by_nvlink(const Routes& routes,
                      std::int64_t first,
                      std::int64_t stride,
                      std::int64_t size) {
  const std::int64_t island = routes.cluster->node.nvlink_domain;
  if (island >= routes.domain_gpus) return true;
  for (std::int64_t k = 0; k + 1 < size; ++k) {
    const std::int64_t a = first + k * stride, b = a + stride;
    const bool same_domain = a / routes.domain_gpus == b / routes.domain_gpus;
    if (same_domain && a / island != b / island) return false;
  }
  return true;
}

// In a mesh each pair of a domain has a link of its own: a member reaches its peers over those alone.
double mesh_share(const Node& node, const GroupLinks& links, bool has_island) {
  const bool part = has_island && node.nvlink_mesh && links.per_domain > 1;
  if (!part) return 1.0;
  return static_cast<double>(links.per_domain - 1) / static_cast<double>(node.nvlink_domain - 1);
}

// Boards of several GPUs in one server (two of four A100): a ring for each of a board's members, each over a PCIe link of its
// own, no faster together than NVLink on the boards. Bridged pairs were measured to reach one link's rate (Vidur, H100 NVL).
double board_rate(const Routes& routes, std::int64_t first, std::int64_t stride, std::int64_t size) {
  const Node& node = routes.cluster->node;
  const double pcie = node.pcie_per_gpu.value;
  if (node.nvlink_domain <= 2 || routes.gpu_island_edge.empty()) return pcie;
  const std::int64_t to_end = node.nvlink_domain - first % node.nvlink_domain;
  const std::int64_t on_board = std::min(size, (to_end + stride - 1) / stride);
  return std::max(pcie, std::min(static_cast<double>(on_board) * pcie, node.nvlink_per_gpu.value));
}

// What holds inside a domain: the slower kind of link that the members need there.
void fill_intra(const Routes& routes, bool nvlink, std::int64_t gpu, GroupLinks& links) {
  const bool has_island = nvlink && !routes.gpu_island_edge.empty();
  const Edge& edge =
      routes.edges[has_island ? routes.gpu_island_edge[at(gpu)] : routes.gpu_host_edge[at(gpu)]];
  links.intra_nvlink = has_island;
  links.intra = BytesPerSecond{edge.capacity * mesh_share(routes.cluster->node, links, has_island)};
  links.intra_latency = Seconds{2.0 * edge.latency};
  links.bottleneck = kind_names[at(static_cast<int>(edge.kind))];
  const Node& node = routes.cluster->node;
  links.domain_reduces = has_island && node.nvlink_sharp && node.nvlink_domain > 2;
}

void fill_inter(const Loads::Share& share, GroupLinks& links) {
  links.inter = links.exchange = BytesPerSecond{share.rate};
  links.inter_latency = Seconds{share.latency};
  const bool inside_binds = links.per_domain > 1 && links.intra < links.inter;
  if (!inside_binds) links.bottleneck = kind_names[at(static_cast<int>(share.bottleneck))];
}

GroupLinks links_of(const Routes& routes,
                    const std::vector<Part>& parts,
                    std::int64_t first,
                    std::int64_t stride,
                    const Loads& loads,
                    const Loads* exchange) {
  GroupLinks links;
  for (const Part& part : parts) {
    links.per_domain = std::max(links.per_domain, part.members);
    links.size += part.members;
  }
  links.size -= 1;
  links.domains = static_cast<std::int64_t>(parts.size());
  const bool nvlink = joined_by_nvlink(routes, first, stride, links.size);
  fill_intra(routes, nvlink, first, links);
  if (!nvlink) links.intra = BytesPerSecond{board_rate(routes, first, stride, links.size)};
  links.inside_nvlink =
      links.domains == 1 && nvlink && (links.size == 1 || !routes.gpu_island_edge.empty());
  links.switch_reduces = links.inside_nvlink && links.domain_reduces && links.size > 1;
  if (links.domains == 1) return links;
  Loads::Share share;
  ring_flows(parts,
             [&](const Door& from, const Door& to, double) { loads.limit(from, to, share); });
  fill_inter(share, links);
  if (exchange != nullptr) {
    double rate = std::numeric_limits<double>::infinity();
    exchange_flows(routes, parts, [&](EdgeId e, int way, double) {
      rate = std::min(rate, exchange->rate(e, way));
    });
    links.exchange = BytesPerSecond{rate};
  }
  return links;
}

// Whether a link above the leaves can bind all-to-all traffic that does not bind a ring's: 1:1
// fabrics carry any traffic that the doors let out.
bool tapered(const Cluster& cluster) {
  return cluster.oversubscription > 1.0 || cluster.region_oversubscription > 1.0;
}

// "one node" or "8 nodes"; NVLink domains that are racks are named so.
std::string span(const Routes& routes, const GroupLinks& links, std::int64_t nodes) {
  const bool racks = routes.domain_gpus > routes.cluster->node.gpus;
  if (nodes == 1) return "inside one node";
  if (links.domains == 1) return "inside one NVLink domain";
  if (racks) return fmt::format("across {} NVLink domains", links.domains);
  return fmt::format("across {} nodes", links.domains);
}

std::int64_t nodes_of(const Routes& routes,
                      std::int64_t first,
                      std::int64_t stride,
                      std::int64_t size) {
  const std::int64_t gpus = routes.cluster->node.gpus;
  std::int64_t nodes = 1;
  for (std::int64_t k = 1; k < size; ++k) {
    if ((first + k * stride) / gpus != (first + (k - 1) * stride) / gpus) ++nodes;
  }
  return nodes;
}

std::uint32_t class_index(Family& family, GroupLinks links) {
  const auto found = std::ranges::find(family.classes, links);
  if (found != family.classes.end()) {
    return static_cast<std::uint32_t>(found - family.classes.begin());
  }
  family.classes.push_back(std::move(links));
  return static_cast<std::uint32_t>(family.classes.size() - 1);
}

// Until all groups are known `says` holds the span alone.
void finish_sentences(Family& family, std::size_t count, std::int64_t size) {
  const std::string_view which =
      std::ranges::adjacent_find(family.classes, std::ranges::not_equal_to{}, &GroupLinks::says) ==
              family.classes.end()
          ? (count == 1 ? "" : "each ")
          : "this one ";
  for (GroupLinks& links : family.classes) {
    links.says = fmt::format(
        "{} {} of {}, {}{}", count, count == 1 ? "group" : "groups", size, which, links.says);
  }
}

}  // namespace

Family groups(const Routes& routes, std::int64_t origin, std::int64_t stride, std::int64_t size) {
  CORE_ASSERT(origin >= 0 && stride >= 1 && size >= 1);
  const std::int64_t gpus = routes.cluster->gpus;
  std::vector<std::int64_t> firsts;
  for (std::int64_t tile = origin; tile < gpus; tile += stride * size) {
    for (std::int64_t i = 0; i < stride && tile + i + (size - 1) * stride < gpus; ++i) {
      firsts.push_back(tile + i);
    }
  }
  Loads loads(routes);
  const auto add = [&](const Door& a, const Door& b, double units) { loads.add(a, b, units); };
  for (std::int64_t first : firsts) ring_flows(parts_of(routes, first, stride, size), add);
  std::optional<Loads> exchange;
  if (tapered(*routes.cluster)) {
    exchange.emplace(routes);
    for (std::int64_t first : firsts) {
      exchange_flows(routes, parts_of(routes, first, stride, size), [&](EdgeId e, int way, double units) {
        exchange->add(e, way, units);
      });
    }
  }
  Family family;
  family.class_of.reserve(firsts.size());
  for (std::int64_t first : firsts) {
    const std::vector<Part> parts = parts_of(routes, first, stride, size);
    GroupLinks links =
        links_of(routes, parts, first, stride, loads, exchange ? &*exchange : nullptr);
    links.says = span(routes, links, nodes_of(routes, first, stride, size));
    family.class_of.push_back(class_index(family, std::move(links)));
  }
  finish_sentences(family, firsts.size(), size);
  return family;
}

namespace {

// The parts of a message from one rank to another; where rails join the nodes, sent on the
// receiver's.
std::vector<Part> ends_of(const Routes& routes, std::int64_t from, std::int64_t to) {
  std::vector<Part> parts = {{.domain = from / routes.domain_gpus, .members = 1},
                             {.domain = to / routes.domain_gpus, .members = 1}};
  add_doors(routes, from, parts[0].doors);
  add_doors(routes, to, parts[1].doors);
  const Node& node = routes.cluster->node;
  if (routes.cluster->rail_optimised && node.nvlink_domain >= node.gpus) {
    const Door own = parts[0].doors.front();
    parts[0].doors.clear();
    for (const Door& door : parts[1].doors) {
      parts[0].doors.push_back({own.gpu, nic_on_rail(routes, from, door.nic)});
    }
  }
  return parts;
}

GroupLinks links_between(const Routes& routes,
                         std::int64_t from,
                         std::int64_t to,
                         const Loads& loads) {
  GroupLinks links;
  links.size = from == to ? 1 : 2;
  const std::int64_t island = routes.cluster->node.nvlink_domain;
  const bool same_domain = from / routes.domain_gpus == to / routes.domain_gpus;
  const bool nvlink = from / island == to / island;
  links.domains = same_domain ? 1 : 2;
  links.per_domain = same_domain ? links.size : 1;
  fill_intra(routes, nvlink, from, links);
  links.inside_nvlink = nvlink;
  links.says = nvlink        ? "each inside NVLink"
               : same_domain ? "each inside one node"
                             : "each to another node";
  if (same_domain) return links;
  const std::vector<Part> ends = ends_of(routes, from, to);
  Loads::Share share;
  channels(
      ends[0], ends[1], [&](const Door& a, const Door& b, double) { loads.limit(a, b, share); });
  fill_inter(share, links);
  return links;
}

}  // namespace

Family pairs(const Routes& routes, std::int64_t distance) {
  const std::int64_t gpus = routes.cluster->gpus;
  const auto for_each_pair = [&](const auto& visit) {
    for (std::int64_t r = std::max<std::int64_t>(0, -distance); r < std::min(gpus, gpus - distance);
         ++r) {
      visit(r, r + distance);
    }
  };
  Loads loads(routes);
  const auto add = [&](const Door& a, const Door& b, double units) { loads.add(a, b, units); };
  for_each_pair([&](std::int64_t from, std::int64_t to) {
    if (from / routes.domain_gpus == to / routes.domain_gpus) return;
    const std::vector<Part> ends = ends_of(routes, from, to);
    channels(ends[0], ends[1], add);
  });
  Family family;
  family.class_of.assign(at(gpus), 0);
  for_each_pair([&](std::int64_t from, std::int64_t to) {
    family.class_of[at(from)] = class_index(family, links_between(routes, from, to, loads));
  });
  return family;
}

}  // namespace core::traffic

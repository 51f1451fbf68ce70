#include <array>
#include <optional>
#include <string>

#include "core/error.h"
#include "simulator/cost/cost.h"

namespace simulator {

Collective collective_of(const core::OpSpec& op) {
  CORE_ASSERT(core::is_collective(op.kind));
  Collective collective{.kind = op.kind, .bytes = op.bytes};
  if (op.kind == core::OpKind::all_to_all && op.one_sided) {
    collective.one_sided = true;
    collective.copies = op.n > 0 ? op.n : 1;
    collective.most_domains = op.k;
  }
  const bool gathers =
      op.kind == core::OpKind::all_gather || op.kind == core::OpKind::reduce_scatter;
  if (gathers) {
    CORE_ASSERT(op.k >= 0 && op.k <= 2);
    collective.levels = static_cast<Levels>(op.k);
  }
  return collective;
}

CollectiveChoice collective_time(const Collective& collective,
                                 const core::GroupLinks& links,
                                 const Curves& curves) {
  if (links.size <= 1) return {{core::Seconds{0.0}, curves.origin_of("collectives")}, "none"};
  std::optional<CollectiveChoice> best;
  for (const CollectiveCost* algorithm : collectives::all()) {
    const std::optional<Cost> cost = algorithm->time(collective, links, curves);
    const bool better = cost && (!best || cost->time < best->cost.time);
    if (better) best = {*cost, algorithm->name};
  }
  CORE_ASSERT(best.has_value());
  return *best;
}

CollectiveChoice collective_time(core::OpKind kind,
                                 core::Bytes bytes,
                                 const core::GroupLinks& links,
                                 const Curves& curves) {
  return collective_time(Collective{.kind = kind, .bytes = bytes}, links, curves);
}

namespace {

struct TransportKeys {
  std::string_view name, sms, compute_slowdown, comm_slowdown;
};

// NCCL's slowdowns are the ones that every architecture has.
constexpr std::array<TransportKeys, 3> transport_keys = {
    TransportKeys{
        "nccl", "overlap.nccl.sms", "overlap.compute_slowdown", "overlap.comm_slowdown"},
    TransportKeys{"copy_engine",
                  "overlap.copy_engine.sms",
                  "overlap.copy_engine.compute_slowdown",
                  "overlap.copy_engine.comm_slowdown"},
    TransportKeys{"one_sided",
                  "overlap.one_sided.sms",
                  "overlap.one_sided.compute_slowdown",
                  "overlap.one_sided.comm_slowdown"}};

const TransportKeys& keys_of(Transport transport) {
  return transport_keys[static_cast<std::size_t>(transport)];
}

}  // namespace

std::string_view name_of(Transport transport) { return keys_of(transport).name; }

Transport transport_of(const core::OpSpec& op) {
  const bool copies =
      op.kind == core::OpKind::copy_to_host || op.kind == core::OpKind::copy_to_device;
  if (copies) return Transport::copy_engine;
  return op.one_sided ? Transport::one_sided : Transport::nccl;
}

Interference interference_of(Transport transport, const Curves& curves) {
  const TransportKeys& keys = keys_of(transport);
  const std::string what = "transport " + std::string(keys.name);
  return {curves.needed(keys.sms, what),
          curves.needed(keys.compute_slowdown, what),
          curves.needed(keys.comm_slowdown, what)};
}

}  // namespace simulator

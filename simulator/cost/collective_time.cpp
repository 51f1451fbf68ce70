#include <optional>

#include "core/error.h"
#include "simulator/cost/cost.h"

namespace simulator {

CollectiveChoice collective_time(core::OpKind kind,
                                 core::Bytes bytes,
                                 const core::GroupLinks& links,
                                 const Curves& curves) {
  if (links.size <= 1) return {{core::Seconds{0.0}, curves.origin_of("collectives")}, "none"};
  std::optional<CollectiveChoice> best;
  for (const CollectiveCost* algorithm : collectives::all()) {
    const std::optional<Cost> cost = algorithm->time(kind, bytes, links, curves);
    const bool better = cost && (!best || cost->time < best->cost.time);
    if (better) best = {*cost, algorithm->name};
  }
  CORE_ASSERT(best.has_value());
  return *best;
}

}  // namespace simulator

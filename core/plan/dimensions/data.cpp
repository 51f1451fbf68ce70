// Data parallel: the batch is divided; gradients are reduced over the group. With ZeRO (arXiv 1910.02054) the group also
// shares out optimizer states (1), gradients (2) and parameters (3).
#include <fmt/format.h>

#include "core/plan/dimension.h"
#include "core/plan/plan.h"

namespace core::dimensions {

namespace {

std::optional<std::string> why_not(const ModelSpec&, const ParallelPlan& plan, std::int64_t) {
  const auto chunk = plan.micro_batch * plan.dp;
  if (plan.global_batch % chunk != 0) {
    return fmt::format("global batch gbs={} does not divide by dp={} x micro-batch mb={}",
                       plan.global_batch, plan.dp, plan.micro_batch);
  }
  return std::nullopt;
}

}  // namespace

extern const Dimension data;
const Dimension data = {"dp", "data parallel", "batch", why_not};

}  // namespace core::dimensions

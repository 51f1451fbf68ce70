// Pipeline parallel: layers, the embedding and the output layer are slots that pp * vpp virtual stages share out in model
// order. Virtual stage s lives on pipeline rank s % pp (Megatron-LM, arXiv 2104.04473, section 2.2).
#include <fmt/format.h>

#include <numeric>

#include "core/plan/dimension.h"
#include "core/plan/plan.h"

namespace core::dimensions {

namespace {

std::optional<std::string> why_not_given(const ModelSpec& model, const ParallelPlan& plan) {
  if (static_cast<std::int64_t>(plan.layers.size()) != plan.stages()) {
    return fmt::format("layers= lists {} stages, pp={} x vpp={} has {}",
                       plan.layers.size(), plan.pp, plan.vpp, plan.stages());
  }
  const auto sum = std::accumulate(plan.layers.begin(), plan.layers.end(), std::int64_t{0});
  if (sum != model.layers()) {
    return fmt::format("layers= sums to {}, the model has {} layers", sum, model.layers());
  }
  return std::nullopt;
}

std::optional<std::string> why_not(const ModelSpec& model, const ParallelPlan& plan, std::int64_t) {
  if (model.loops > 1 && plan.pp > 1) {
    return fmt::format("layers that run {} times with the same weights need pp=1, not pp={}", model.loops, plan.pp);
  }
  if (plan.layout == Layout::given) return why_not_given(model, plan);
  if (plan.layout == Layout::even && model.layers() % plan.stages() != 0) {
    return fmt::format("{} layers do not divide by pp={} x vpp={}; layers=slots shares them out unevenly",
                       model.layers(), plan.pp, plan.vpp);
  }
  if (plan.layout == Layout::slots && model.layers() + 2 < plan.stages()) {
    return fmt::format("{} layers, embedding and output are fewer slots than pp={} x vpp={} stages",
                       model.layers(), plan.pp, plan.vpp);
  }
  if (plan.layout == Layout::slots && plan.stages() == 1) {
    return "layers=slots needs more than one stage";
  }
  return std::nullopt;
}

}  // namespace

extern const Dimension pipeline;
const Dimension pipeline = {"pp", "pipeline parallel", "layers", why_not};

}  // namespace core::dimensions

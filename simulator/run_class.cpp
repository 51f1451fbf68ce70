#include "simulator/run_class.h"

#include <algorithm>

#include "simulator/pricer.h"

namespace simulator {

namespace {

bool has_experts(const core::ModelSpec& model) {
  const auto count = core::count_parameters(model);
  return count.active < count.total;
}

}  // namespace

RunClass class_of(const Setting& setting,
                  const core::ParallelPlan& plan,
                  const Curves& curves,
                  const std::vector<SoftwareGroup>& software) {
  RunClass run;
  run.experts = has_experts(setting.model);
  const auto& framework = setting.framework_of(plan).name;
  const auto group = std::find_if(software.begin(), software.end(), [&](const SoftwareGroup& g) {
    return std::find(g.frameworks.begin(), g.frameworks.end(), framework) != g.frameworks.end();
  });
  if (group != software.end()) run.software = group->name;
  run.own_curves = curves.origin_of("gemm") != Origin::roofline;
  return run;
}

bool RunPattern::holds(const RunClass& run) const {
  return (!experts || *experts == run.experts) && (!software || *software == run.software) &&
         (!own_curves || *own_curves == run.own_curves);
}

std::string RunPattern::text() const {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (experts) add(*experts ? "mixture of experts" : "dense");
  if (software) add(software->empty() ? "other software" : *software);
  if (own_curves) add(*own_curves ? "GPU with GEMM curves of its own" : "GPU with scaled GEMM curves");
  return out.empty() ? "all runs" : out;
}

std::vector<RunPattern> patterns_of(const RunClass& run) {
  return {{},
          {run.experts, std::nullopt, std::nullopt},
          {run.experts, run.software, std::nullopt},
          {run.experts, run.software, run.own_curves}};
}

}  // namespace simulator

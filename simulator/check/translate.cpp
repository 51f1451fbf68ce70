#include "simulator/check/translate.h"

#include <fmt/format.h>

#include <charconv>

#include "core/error.h"
#include "simulator/check/cluster_of.h"
#include "simulator/check/model_of.h"
#include "simulator/check/plan_of.h"
#include "simulator/check/recipe_of.h"
#include "simulator/check/software.h"
#include "simulator/step.h"

namespace simulator {

namespace {

// "dropless", "1.0 (padded)"; 0 stands for dropless.
double capacity_of(const core::MeasuredRun& run, Notes& notes) {
  const std::string& text = run.moe_capacity;
  if (text.empty() || text == "dropless") return 0.0;
  double factor = 0.0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (read.ec != std::errc() || factor <= 0.0) {
    throw core::InputError(fmt::format("moe_capacity {}: expected dropless or a factor", text));
  }
  if (text.find("padded") != std::string::npos) notes.assume("experts padded to their capacity");
  return factor;
}

std::string framework_name(const core::MeasuredRun& run, Notes& notes) {
  const Stack stack = stack_of(run);
  const bool known = run.iteration_time_ms || !run.test_case.empty() || run.framework.find("Megatron") != std::string::npos ||
                     run.framework.find("NeMo") != std::string::npos || stack != Stack::megatron;
  if (!known) notes.assume(fmt::format("{} costs what {} costs", run.framework, name_of(stack)));
  return std::string(name_of(stack));
}

void check_legal(const Translation& t) {
  if (const auto reason = core::why_not(t.setting.model, t.plan, t.setting.gpus, t.setting.seq)) throw core::InputError(*reason);
}

}  // namespace

Translation translate(const core::MeasuredRun& run) {
  Translation t;
  Setting& s = t.setting;
  s.model = model_of(run, t.notes);
  s.cluster = cluster_of(run, t.notes);
  s.recipe = recipe_of(run, s.cluster.gpu, t.notes);
  const auto name = framework_name(run, t.notes);
  s.framework = framework_of(run, name, t.notes);
  s.sharded_framework = name == "megatron" ? framework_of(run, "fsdp", t.notes) : s.framework;
  s.attention = attention_of(run, s.cluster.gpu, t.notes);
  s.seq = *run.seq_len;
  s.gpus = *run.gpus;
  s.capacity = capacity_of(run, t.notes);
  if (run.experts.value_or(0) > 0) t.notes.assume("experts evenly loaded");
  t.plan = plan_of(run, s.model, s.recipe, t.notes);
  check_legal(t);
  return t;
}

}  // namespace simulator

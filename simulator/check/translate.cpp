#include "simulator/check/translate.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "core/error.h"
#include "core/io/document.h"
#include "simulator/check/cluster_of.h"
#include "simulator/check/model_of.h"
#include "simulator/check/plan_of.h"
#include "simulator/check/recipe_of.h"
#include "simulator/check/software.h"
#include "simulator/check/sources.h"
#include "simulator/step.h"

namespace simulator {

namespace {

// "dropless", "1.0 (padded)"; 0 stands for dropless.
double capacity_of(const core::MeasuredRun& run, Notes& notes) {
  const std::string& text = run.moe_capacity;
  if (text.empty() || text == "dropless") return 0.0;
  double factor = 0.0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (read.ec != std::errc() || !(factor > 0.0 && factor <= 1e3)) {
    throw core::InputError(fmt::format("moe_capacity {}: expected dropless or a factor", text));
  }
  if (text.find("padded") != std::string::npos) notes.assume("experts padded to their capacity");
  return factor;
}

std::string framework_name(const core::MeasuredRun& run, Notes& notes) {
  const Stack stack = stack_of(run);
  const bool known = run.iteration_time_ms || !run.test_case.empty() ||
                     run.framework.find("Megatron") != std::string::npos ||
                     run.framework.find("NeMo") != std::string::npos || stack != Stack::megatron;
  const auto name = framework_file_of(run);
  if (!known) notes.assume(fmt::format("{} costs what {} costs", run.framework, name));
  return std::string(name);
}

// What functional tests say in their names alone and no column holds.
void refuse_other_tests(const core::MeasuredRun& run) {
  struct Word {
    std::string_view word, why;
  };
  constexpr std::array words = std::to_array<Word>({
      {"bert/", "an encoder"},
      {"mimo/", "a model with vision"},
      {"multimodal", "a model with vision"},
      {"nemotron3_5", "a hybrid whose pattern of layers no column says"},
      {"distill", "a teacher model runs beside the student"},
      {"offloading", "activations of parts of a layer are offloaded"},
  });
  for (const auto& [word, why] : words) {
    if (run.test_case.find(word) != std::string::npos)
      throw core::InputError(fmt::format("test case {}: {}", run.test_case, why));
  }
}

void check_legal(const Translation& t) {
  if (const auto reason = core::why_not(t.setting.model, t.plan, t.setting.gpus, t.setting.seq))
    throw core::InputError(*reason);
}

Translation translated(const core::MeasuredRun& given) {
  refuse_other_tests(given);
  Translation t;
  const auto facts = facts_of(given);
  for (const auto& sentence : facts.says) t.notes.assume(sentence);
  auto run = given;
  if (facts.cross_entropy_fusion) run.cross_entropy_fusion = *facts.cross_entropy_fusion;
  Setting& s = t.setting;
  s.model = model_of(run, t.notes);
  s.cluster = cluster_of(run, facts, t.notes);
  s.recipe = recipe_of(run, facts, s.cluster.gpu, t.notes);
  const auto name = framework_name(run, t.notes);
  s.framework = framework_of(run, facts, name, s.cluster.gpu, t.notes);
  s.sharded_framework = stack_of(run) == Stack::megatron
                            ? core::sharded_by(s.framework, framework_of(run, facts, "fsdp", s.cluster.gpu, t.notes))
                            : s.framework;
  s.attention = attention_of(run, s.cluster.gpu, t.notes);
  s.seq = *run.seq_len;
  s.gpus = *run.gpus;
  s.capacity = capacity_of(run, t.notes);
  if (run.experts.value_or(0) > 0) t.notes.assume("experts evenly loaded");
  t.plan = plan_of(run, s.model, s.recipe, t.notes);
  check_legal(t);
  return t;
}

}  // namespace

// Cells of a table may hold anything, line breaks too.
Translation translate(const core::MeasuredRun& run) {
  try {
    return translated(run);
  } catch (const core::InputError& error) {
    throw core::InputError(core::printable(error.what(), 400));
  }
}

}  // namespace simulator

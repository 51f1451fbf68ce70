// The search against two slower ones: every plan enumerated by plain loops, and every plan that fits simulated through the
// step graph and the engine.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "planner/search.h"
#include "simulator/request.h"
#include "simulator/step.h"
#include "tests/planner/axes.h"

namespace planner {
namespace {

using core::Layout;
using core::ParallelPlan;
using core::Recompute;

struct Space {
  const char *model, *gpu;
  std::int64_t gpus, batch, seq;
  double memory;  // of the GPU's, so that a part of the plans does not fit
};

simulator::Setting setting_of(const Space& space) {
  simulator::Request request;
  request.model = space.model, request.gpu = space.gpu, request.gpus = space.gpus;
  request.global_batch = space.batch, request.seq = space.seq;
  auto setting = simulator::make_setting(request);
  setting.cluster.gpu.memory_usable = core::Bytes{space.memory * setting.cluster.gpu.memory_usable.value};
  return setting;
}

Question question_of(const Space& space, const simulator::Setting& setting) {
  return {&setting.model, space.gpus, space.batch, space.seq, setting.recipe.name, {}};
}

// All plans by plain loops over whole numbers: which of them can run, core::why_not says.
class Enumeration {
 public:
  Enumeration(const Space& space, const simulator::Setting& setting) : space_(space), setting_(setting) {
    for (std::int64_t tp = 1; tp <= space.gpus; ++tp) {
      for (std::int64_t pp = 1; tp * pp <= space.gpus; ++pp) {
        if (space.gpus % (tp * pp) == 0) with_degrees(tp, pp);
      }
    }
  }
  const std::vector<ParallelPlan>& plans() const { return plans_; }

 private:
  void with_degrees(std::int64_t tp, std::int64_t pp) {
    ParallelPlan plan;
    plan.tp = tp, plan.pp = pp, plan.dp = space_.gpus / (tp * pp);
    plan.global_batch = space_.batch, plan.recipe = setting_.recipe.name;
    for (std::int64_t mb = 1; mb <= space_.batch; ++mb) {
      plan.micro_batch = mb;
      for (const bool sp : {false, true}) {
        if (sp && tp == 1) continue;
        plan.sp = sp;
        with_schedule(plan, "gpipe", 1);
        with_schedule(plan, "1f1b", 1);
        for (std::int64_t v = 2; pp * v <= setting_.model.layers() + 2; ++v) with_schedule(plan, "interleaved", v);
      }
    }
  }
  void with_schedule(ParallelPlan plan, const char* schedule, std::int64_t vpp) {
    plan.schedule = schedule, plan.vpp = vpp;
    for (const auto layout : {Layout::even, Layout::slots}) {
      plan.layout = layout;
      if (core::why_not(setting_.model, plan, space_.gpus, space_.seq)) continue;
      for (int zero = 0; zero <= (plan.dp > 1 ? 3 : 0); ++zero) {
        plan.zero = zero;
        with_recompute(plan);
      }
    }
  }
  void with_recompute(ParallelPlan plan) {
    for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      plan.recompute = recompute;
      plans_.push_back(plan);
    }
    const auto layers = core::layers_of_stages(plan, setting_.model.layers());
    for (std::int64_t n = 1; n < *std::max_element(layers.begin(), layers.end()); ++n) {
      plan.recompute_layers = n;
      plans_.push_back(plan);
    }
  }

  const Space& space_;
  const simulator::Setting& setting_;
  std::vector<ParallelPlan> plans_;
};

struct Tried {
  ParallelPlan plan;
  core::SimTime time = 0;
  bool fits = false;
};

Tried simulate(const simulator::Setting& setting, const simulator::Bench& bench, const ParallelPlan& plan) {
  const auto step =
      simulator::simulate_step(setting, bench, plan, core::Grain::cell, core::Fold::yes, simulator::Detail::answer);
  const auto& framework = setting.framework_of(plan);
  bool fits = true;
  for (const auto& peak : simulator::memory_peaks({step.graph, step.timeline, step.prices})) {
    const auto total = peak.bytes + core::fragmentation(peak.short_lived, framework);
    fits = fits && static_cast<double>(total) <= setting.cluster.gpu.memory_usable.value;
  }
  return {plan, step.timeline.makespan + core::to_sim_time(framework.step_overhead), fits};
}

// Of plans that differ in recompute only, those that search.h lists: none where it fits; else selective where that fits, and
// the least number of layers in full that fits (all of them at last).
std::vector<Tried> listed(const std::vector<Tried>& tried) {
  std::map<std::string, std::vector<const Tried*>> families;
  for (const auto& t : tried) {
    auto key = t.plan;
    key.recompute = Recompute::none, key.recompute_layers = 0;
    families[core::to_text(key)].push_back(&t);
  }
  std::vector<Tried> out;
  for (const auto& [key, family] : families) {
    const Tried* full = nullptr;
    std::int64_t least = 0;
    bool plain = false;
    for (const auto* t : family) {
      if (!t->fits) continue;
      if (t->plan.recompute == Recompute::none) plain = true, out.push_back(*t);
    }
    for (const auto* t : family) {
      if (!t->fits || plain) continue;
      if (t->plan.recompute == Recompute::selective) out.push_back(*t);
      if (t->plan.recompute != Recompute::full) continue;
      const auto layers = t->plan.recompute_layers == 0 ? std::int64_t{1'000'000} : t->plan.recompute_layers;
      if (full == nullptr || layers < least) full = t, least = layers;
    }
    if (full != nullptr) out.push_back(*full);
  }
  std::sort(out.begin(), out.end(), [](const Tried& a, const Tried& b) { return a.time < b.time; });
  return out;
}

const Space spaces[] = {
    {"tiny-gpt", "a100-sxm-80", 1, 4, 64, 1.0},        {"tiny-gpt", "a100-sxm-80", 2, 4, 64, 0.02},
    {"tiny-gpt", "h100-sxm", 4, 8, 64, 1.0},           {"tiny-gpt", "h100-sxm", 4, 8, 64, 0.0182},
    {"tiny-gpt", "v100-sxm-32", 8, 8, 64, 1.0},        {"tiny-llama", "a100-sxm-80", 2, 6, 64, 1.0},
    {"tiny-llama", "a100-sxm-80", 4, 6, 64, 0.0181},   {"tiny-llama", "h100-sxm", 6, 12, 64, 1.0},
    {"tiny-llama", "h100-sxm", 8, 8, 64, 1.0},         {"tiny-llama", "b200", 8, 16, 64, 1.0},
    {"tiny-llama", "a100-pcie-80", 12, 12, 64, 1.0},   {"tiny-llama", "h100-sxm", 16, 16, 64, 1.0},
    {"tiny-llama", "v100-sxm-16", 4, 12, 32, 1.0},     {"gpt2", "v100-sxm-16", 2, 4, 1024, 0.3},
    {"gpt2", "v100-sxm-16", 4, 4, 1024, 0.25},         {"smollm2-135m", "a100-sxm-40", 3, 6, 2048, 0.15},
    {"qwen2-0.5b", "h100-sxm", 2, 4, 4096, 0.2},       {"qwen2-0.5b", "a100-sxm-80", 4, 4, 4096, 0.2},
    {"llama-3.2-1b", "h100-sxm", 8, 8, 4096, 0.35},    {"llama-3.2-1b", "a100-sxm-40", 16, 16, 2048, 0.5},
    {"llama-3.1-8b", "h100-sxm", 16, 16, 4096, 1.0},
};

TEST(Exhaustive, EnumeratesTheSameNumberOfLegalPlans) {
  for (const auto& space : spaces) {
    const auto setting = setting_of(space);
    const simulator::Bench bench(setting);
    const auto question = question_of(space, setting);
    const auto found = search(setting, bench, question, plain_axes(question));
    const Enumeration all(space, setting);
    EXPECT_EQ(found.searched, static_cast<std::int64_t>(all.plans().size())) << space.model << " on " << space.gpus;
    EXPECT_EQ(found.searched, found.evaluated + found.pruned + found.dominated + found.memory_rejected)
        << space.model << " on " << space.gpus;
  }
}

TEST(Exhaustive, PrunedSearchFindsWhatSimulatingEveryPlanFinds) {
  std::int64_t plans = 0, out_of_memory = 0;
  int compared = 0;
  for (const auto& space : spaces) {
    const auto setting = setting_of(space);
    const simulator::Bench bench(setting);
    std::vector<Tried> tried;
    const Enumeration all(space, setting);
    for (const auto& plan : all.plans()) tried.push_back(simulate(setting, bench, plan));
    plans += static_cast<std::int64_t>(tried.size());
    out_of_memory += std::count_if(tried.begin(), tried.end(), [](const Tried& t) { return !t.fits; });
    const auto expected = listed(tried);

    const auto question = question_of(space, setting);
    const auto found = search(setting, bench, question, plain_axes(question));
    ASSERT_EQ(found.best.size(), std::min<std::size_t>(20, expected.size())) << space.model << " on " << space.gpus;
    for (std::size_t i = 0; i < found.best.size(); ++i) {
      EXPECT_EQ(found.best[i].time, expected[i].time) << space.model << " on " << space.gpus << ", place " << i << ": "
                                                      << core::to_text(found.best[i].plan);
    }
    ++compared;
  }
  std::printf("%d spaces, %lld plans, %lld of them out of memory\n", compared, static_cast<long long>(plans),
              static_cast<long long>(out_of_memory));
  EXPECT_GE(compared, 20);
  EXPECT_GE(out_of_memory, plans / 25);
}

TEST(Exhaustive, PruningChangesNothing) {
  int compared = 0;
  for (const auto& space : spaces) {
    const auto setting = setting_of(space);
    const simulator::Bench bench(setting);
    const auto question = question_of(space, setting);
    const auto axes = plain_axes(question);
    SearchOptions every;
    every.prune = false;
    const auto pruned = search(setting, bench, question, axes), whole = search(setting, bench, question, axes, every);
    EXPECT_EQ(whole.pruned, 0);
    EXPECT_GE(whole.evaluated, pruned.evaluated);
    ASSERT_EQ(pruned.best.size(), whole.best.size());
    for (std::size_t i = 0; i < whole.best.size(); ++i) {
      EXPECT_EQ(pruned.best[i].time, whole.best[i].time);
      EXPECT_EQ(pruned.best[i].plan, whole.best[i].plan);
    }
    ++compared;
  }
  EXPECT_GE(compared, 20);
}

// Factors of a calibrated system reach the search's prices and bounds and the engine alike.
TEST(Exhaustive, FindsTheSameUnderACalibration) {
  const Space calibrated[] = {{"tiny-llama", "h100-sxm", 8, 8, 64, 1.0}, {"qwen2-0.5b", "a100-sxm-80", 4, 4, 4096, 0.2},
                              {"llama-3.2-1b", "h100-sxm", 8, 8, 4096, 0.35}};
  for (const auto& space : calibrated) {
    auto setting = setting_of(space);
    simulator::calibrate(setting, {1.3, 2.5, 0.6, {}});
    const simulator::Bench bench(setting);
    std::vector<Tried> tried;
    const Enumeration all(space, setting);
    for (const auto& plan : all.plans()) tried.push_back(simulate(setting, bench, plan));
    const auto expected = listed(tried);
    const auto question = question_of(space, setting);
    const auto found = search(setting, bench, question, plain_axes(question));
    ASSERT_EQ(found.best.size(), std::min<std::size_t>(20, expected.size())) << space.model;
    for (std::size_t i = 0; i < found.best.size(); ++i) {
      EXPECT_EQ(found.best[i].time, expected[i].time) << space.model << ' ' << i;
    }
  }
}

// The same with every axis: context and expert parallel, all schedules, modules, sharding in nodes.
TEST(Exhaustive, PruningChangesNothingOnAnyAxis) {
  const Space wide[] = {{"tiny-llama", "h100-sxm", 8, 16, 2048, 1.0},
                        {"tiny-llama", "h100-sxm", 16, 16, 4096, 0.0195},
                        {"qwen2-0.5b", "a100-sxm-80", 4, 8, 4096, 0.3},
                        {"deepseek-v2-lite", "h100-sxm", 16, 16, 2048, 1.0}};
  std::int64_t without_a_run = 0, runs = 0;
  for (const auto& space : wide) {
    const auto setting = setting_of(space);
    const simulator::Bench bench(setting);
    const auto question = question_of(space, setting);
    const auto axes = axes_of(question);
    SearchOptions every;
    every.prune = false;
    const auto pruned = search(setting, bench, question, axes), whole = search(setting, bench, question, axes, every);
    EXPECT_EQ(whole.pruned, 0);
    without_a_run += pruned.pruned;
    runs += whole.evaluated;
    EXPECT_EQ(pruned.searched, whole.searched);
    EXPECT_EQ(pruned.searched, pruned.evaluated + pruned.pruned + pruned.dominated + pruned.memory_rejected);
    ASSERT_EQ(pruned.best.size(), whole.best.size());
    ASSERT_FALSE(whole.best.empty()) << space.model;
    for (std::size_t i = 0; i < whole.best.size(); ++i) {
      EXPECT_EQ(pruned.best[i].time, whole.best[i].time) << space.model << ' ' << i;
      EXPECT_EQ(pruned.best[i].plan, whole.best[i].plan) << space.model << ' ' << i;
    }
  }
  std::printf("%lld plans run; %lld pruned\n", static_cast<long long>(runs), static_cast<long long>(without_a_run));
  EXPECT_GT(without_a_run, 10'000);
  EXPECT_GT(runs, 1'000);
}

// The same where offload is allowed: with little memory on the GPUs, and with little on the host too.
TEST(Exhaustive, PruningChangesNothingWithOffload) {
  struct Scarce {
    Space space;
    double host = 1.0;  // share of the node's memory
  };
  const Scarce all[] = {{{"llama-3.2-1b", "h100-sxm", 1, 4, 2048, 0.2}},
                        {{"qwen2-0.5b", "a100-sxm-80", 4, 8, 4096, 0.06}},
                        {{"llama-3.2-1b", "h100-sxm", 8, 8, 4096, 0.07}},
                        {{"llama-3.2-1b", "h100-sxm", 8, 8, 4096, 0.07}, 0.012}};
  std::int64_t without_a_run = 0, offloaded = 0;
  for (const auto& [space, host] : all) {
    auto setting = setting_of(space);
    setting.cluster.node.host_memory = core::Bytes{host * setting.cluster.node.host_memory.value};
    const simulator::Bench bench(setting);
    auto question = question_of(space, setting);
    question.allowed = all_offloads();
    const auto axes = plain_axes(question);
    SearchOptions every;
    every.prune = false;
    const auto pruned = search(setting, bench, question, axes), whole = search(setting, bench, question, axes, every);
    without_a_run += pruned.pruned;
    EXPECT_EQ(pruned.searched, whole.searched);
    EXPECT_EQ(pruned.searched, pruned.evaluated + pruned.pruned + pruned.dominated + pruned.memory_rejected);
    ASSERT_EQ(pruned.best.size(), whole.best.size());
    ASSERT_FALSE(whole.best.empty()) << space.model;
    for (std::size_t i = 0; i < whole.best.size(); ++i) {
      EXPECT_EQ(pruned.best[i].time, whole.best[i].time) << space.model << ' ' << i;
      EXPECT_EQ(core::to_text(pruned.best[i].plan), core::to_text(whole.best[i].plan)) << space.model << ' ' << i;
      offloaded += whole.best[i].plan.offload.any() ? 1 : 0;
      const auto step = simulator::simulate_step(setting, bench, whole.best[i].plan, core::Grain::cell, core::Fold::yes,
                                                 simulator::Detail::answer);
      EXPECT_LE(step.report.peak_memory_GiB, step.report.memory_limit_GiB * (1.0 + 1e-9));
      EXPECT_EQ(step.report.host_short_GiB, 0.0);
    }
  }
  EXPECT_GT(without_a_run, 100);
  EXPECT_GT(offloaded, 20);
}

TEST(Exhaustive, OpGrainWinnerIsAmongTheBestAtCellGrain) {
  for (const auto& space : spaces) {
    if (space.gpus * space.batch > 128) continue;
    const auto setting = setting_of(space);
    const simulator::Bench bench(setting);
    const auto question = question_of(space, setting);
    SearchOptions every;
    every.keep = 1'000'000;
    every.prune = false;
    const auto found = search(setting, bench, question, plain_axes(question), every);
    if (found.best.empty()) continue;
    std::size_t winner = 0;
    core::SimTime least = 0;
    for (std::size_t i = 0; i < found.best.size(); ++i) {
      const auto step = simulator::simulate_step(setting, bench, found.best[i].plan, core::Grain::op, core::Fold::yes,
                                                 simulator::Detail::answer);
      const auto time = step.timeline.makespan + core::to_sim_time(setting.framework_of(found.best[i].plan).step_overhead);
      if (i == 0 || time < least) winner = i, least = time;
    }
    EXPECT_LT(winner, 20u) << space.model << " on " << space.gpus;
  }
}

// Field case F68: no plan, but how many failed for which reason, and the nearest miss.
TEST(Exhaustive, SaysWhyNothingFits) {
  const Space space{"llama-3.1-70b", "a100-sxm-40", 2, 4, 4096, 24.0 / 39.4};
  const auto setting = setting_of(space);
  const simulator::Bench bench(setting);
  const auto question = question_of(space, setting);
  const auto found = search(setting, bench, question, plain_axes(question));
  EXPECT_TRUE(found.best.empty());
  EXPECT_EQ(found.feasible(), 0);
  EXPECT_EQ(found.memory_rejected, found.searched);
  ASSERT_FALSE(found.rejected.empty());
  EXPECT_EQ(found.rejected.front().reason, "memory");
  // 70.6 B parameters at 18 bytes over two GPUs are 591 GiB each before anything else.
  EXPECT_GT(found.rejected.front().short_GiB, 591.0 - 24.0);
  EXPECT_FALSE(found.rejected.front().nearest.empty());
}

}  // namespace
}  // namespace planner

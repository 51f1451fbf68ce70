// The search under memory limits that cut through its families, against a brute force with rules of
// its own; its counts; its threads. (exhaustive_test.cpp: whole spaces, and the winner at op
// grain.)
#include "planner/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/request.h"
#include "simulator/step.h"
#include "tests/planner/axes.h"

namespace planner {
namespace {

using core::Layout;
using core::ParallelPlan;
using core::Recompute;

struct Space {
  std::string model, gpu;
  std::int64_t gpus = 1, batch = 1, seq = 64;
  std::string attention = "";
};

simulator::Setting setting_of(const Space& space) {
  simulator::Request request;
  request.model = space.model;
  request.gpu = space.gpu;
  request.gpus = space.gpus;
  request.global_batch = space.batch;
  request.seq = space.seq;
  request.attention = space.attention;
  return simulator::make_setting(request);
}

Question question_of(const Space& space,
                     const simulator::Setting& setting,
                     const std::string& fixed = "") {
  return {&setting.model,
          space.gpus,
          space.batch,
          space.seq,
          setting.recipe.name,
          core::parse_plan(fixed, "--fix"),
          64};  // tensor parallel over all of them
}

// --- plans by rules of our own -------------------------------------------------------------------

struct Shape {
  std::int64_t heads = 0, kv_heads = 0, ffn = 0, layers = 0;
};
Shape shape_of(const core::ModelSpec& model) {
  Shape s;
  s.layers = model.layers();
  for (const auto& block : model.kinds.front().blocks) {
    if (block.kind == "attention")
      s.heads = block.shape.at("heads"), s.kv_heads = block.shape.at("kv_heads");
    if (block.kind == "mlp") s.ffn = block.shape.at("ffn");
  }
  return s;
}

// Layers of the fullest virtual stage; 0 where the layout is not possible.
std::int64_t most_layers(std::int64_t layers, std::int64_t stages, Layout layout) {
  if (layout == Layout::even) return layers % stages == 0 ? layers / stages : 0;
  if (stages == 1 || layers + 2 < stages) return 0;
  // The two tables take a slot each, at the ends; what is left over goes to stages in the middle.
  std::vector<std::int64_t> slots(static_cast<std::size_t>(stages), (layers + 2) / stages);
  for (std::int64_t left = (layers + 2) % stages, s = stages - 2; left > 0; --left, --s)
    ++slots[static_cast<std::size_t>(s)];
  --slots.front();
  --slots.back();
  return *std::max_element(slots.begin(), slots.end());
}

std::vector<ParallelPlan> brute_force(const Space& space, const simulator::Setting& setting) {
  const auto shape = shape_of(setting.model);
  std::vector<ParallelPlan> out;
  for (std::int64_t tp = 1; tp <= space.gpus; ++tp) {
    if (shape.heads % tp != 0 || shape.ffn % tp != 0) continue;
    if (shape.kv_heads % tp != 0 && tp % shape.kv_heads != 0) continue;
    for (std::int64_t pp = 1; pp <= space.gpus; ++pp) {
      if (space.gpus % (tp * pp) != 0) continue;
      const auto dp = space.gpus / (tp * pp);
      for (std::int64_t mb = 1; mb <= space.batch; ++mb) {
        if (space.batch % (mb * dp) != 0) continue;
        const auto m = space.batch / (mb * dp);
        for (std::int64_t vpp = 1; vpp <= shape.layers + 2; ++vpp) {
          for (const std::string schedule : {"gpipe", "1f1b", "interleaved"}) {
            if ((schedule == "interleaved") != (vpp > 1)) continue;
            if (vpp > 1 && (pp == 1 || m < pp)) continue;
            for (const auto layout : {Layout::even, Layout::slots}) {
              const auto most = most_layers(shape.layers, pp * vpp, layout);
              if (most == 0) continue;
              for (const bool sp : {false, true}) {
                if (sp && (tp == 1 || space.seq % tp != 0)) continue;
                for (int zero = 0; zero <= (dp > 1 ? 3 : 0); ++zero) {
                  ParallelPlan plan;
                  plan.tp = tp, plan.sp = sp, plan.pp = pp, plan.vpp = vpp, plan.dp = dp,
                  plan.zero = zero;
                  plan.micro_batch = mb, plan.global_batch = space.batch;
                  plan.schedule = schedule, plan.layout = layout, plan.recipe = setting.recipe.name;
                  for (const auto recompute :
                       {Recompute::none, Recompute::selective, Recompute::full}) {
                    plan.recompute = recompute;
                    out.push_back(plan);
                  }
                  for (std::int64_t n = 1; n < most; ++n) {
                    plan.recompute_layers = n;
                    out.push_back(plan);
                  }
                }
              }
            }
          }
        }
      }
    }
  }
  return out;
}

// --- what each takes -----------------------------------------------------------------------------

struct Taken {
  ParallelPlan plan;
  core::SimTime time = 0;
  std::int64_t bytes = 0;  // on the fullest stage
};

Taken simulate(const simulator::Setting& setting,
               const simulator::Bench& bench,
               const ParallelPlan& plan) {
  const auto step = simulator::simulate_step(
      setting, bench, plan, core::Grain::cell, core::Fold::yes, simulator::Detail::answer);
  const auto& framework = setting.framework_of(plan);
  Taken taken{plan, step.timeline.makespan + core::to_sim_time(framework.step_overhead), 0};
  for (std::int32_t r = 0; r < plan.pp; ++r) {
    const auto peak = simulator::memory_peak({step.graph, step.timeline, step.prices}, r);
    taken.bytes =
        std::max(taken.bytes, peak.bytes + core::fragmentation(peak.short_lived, framework));
  }
  return taken;
}

// What search.h lists of plans that differ in recompute only: none where it fits; else selective
// where it fits, and of full on n layers (all of them last) the least n that fits.
std::vector<core::SimTime> listed(const std::vector<Taken>& taken, double limit) {
  struct Family {
    const Taken *none = nullptr, *selective = nullptr, *full = nullptr;
  };
  const auto layers = [](const Taken& t) {
    return t.plan.recompute_layers == 0 ? std::int64_t{1} << 40 : t.plan.recompute_layers;
  };
  std::map<std::string, Family> families;
  for (const auto& t : taken) {
    if (static_cast<double>(t.bytes) > limit) continue;
    auto key = t.plan;
    key.recompute = Recompute::none, key.recompute_layers = 0;
    auto& family = families[core::to_text(key)];
    switch (t.plan.recompute) {
      case Recompute::none:
        family.none = &t;
        break;
      case Recompute::selective:
        family.selective = &t;
        break;
      case Recompute::modules:
        break;
      case Recompute::full:
        if (family.full == nullptr || layers(t) < layers(*family.full)) family.full = &t;
        break;
    }
  }
  std::vector<core::SimTime> times;
  for (const auto& [key, family] : families) {
    if (family.none != nullptr) {
      times.push_back(family.none->time);
      continue;
    }
    if (family.selective != nullptr) times.push_back(family.selective->time);
    if (family.full != nullptr) times.push_back(family.full->time);
  }
  std::sort(times.begin(), times.end());
  return times;
}

const Space small_spaces[] = {
    {"tiny-llama", "h100-sxm", 4, 8, 64},
    {"tiny-gpt", "v100-sxm-32", 2, 8, 64, "unfused"},
    {"smollm2-135m", "a100-sxm-40", 2, 4, 2048},
    {"qwen2-0.5b", "h100-sxm", 2, 2, 4096, "unfused"},
    {"gpt2", "v100-sxm-16", 3, 6, 1024, "unfused"},
};

TEST(BruteForce, ListsTheSamePlansUnderAnyMemoryLimit) {
  int spaces = 0, tight = 0;
  for (const auto& space : small_spaces) {
    auto setting = setting_of(space);
    const simulator::Bench bench(setting);
    std::vector<Taken> taken;
    std::vector<std::int64_t> limits;
    for (const auto& plan : brute_force(space, setting)) {
      taken.push_back(simulate(setting, bench, plan));
      limits.push_back(taken.back().bytes);
    }
    std::sort(limits.begin(), limits.end());
    limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
    // All of them on the first space, where recompute of a last layer takes more than it saves.
    const auto steps = std::min<std::size_t>(limits.size(), spaces == 0 ? limits.size() : 40);
    for (std::size_t i = 0; i < steps; ++i) {
      // What one plan takes to the byte: it fits, and whatever takes a byte more does not.
      const auto limit = static_cast<double>(
          limits[i * (limits.size() - 1) / std::max<std::size_t>(1, steps - 1)]);
      setting.cluster.gpu.memory_usable = core::Bytes{limit};
      const auto question = question_of(space, setting);
      SearchOptions options;
      options.keep = 1'000'000;
      options.prune = i % 2 == 0;
      const auto found = search(setting, bench, question, plain_axes(question), options);
      const auto expected = listed(taken, limit);
      std::vector<core::SimTime> times;
      for (const auto& ranked : found.best) times.push_back(ranked.time);
      ASSERT_EQ(times, expected) << space.model << " under " << limit << " bytes";
      EXPECT_EQ(found.searched, static_cast<std::int64_t>(taken.size()));
      EXPECT_EQ(found.searched,
                found.evaluated + found.pruned + found.dominated + found.memory_rejected);
      ++spaces;
      tight += found.memory_rejected > 0 ? 1 : 0;

      options.keep = 5;
      options.prune = true;
      const auto few = search(setting, bench, question, plain_axes(question), options);
      times.resize(std::min<std::size_t>(5, times.size()));
      std::vector<core::SimTime> few_times;
      for (const auto& ranked : few.best) few_times.push_back(ranked.time);
      ASSERT_EQ(few_times, times) << space.model << " under " << limit << " bytes, keeping 5";
    }
  }
  EXPECT_GE(spaces, 600);
  EXPECT_GE(tight, 500);
}

// Each plan of the list is what it says: its time by the graph, and it fits.
TEST(BruteForce, FindsTheSameTimesAndFits) {
  const Space space{"llama-3.2-1b", "a100-sxm-40", 16, 32, 2048};
  const auto setting = setting_of(space);
  const simulator::Bench bench(setting);
  const auto question = question_of(space, setting);
  const auto found = search(setting, bench, question, plain_axes(question));
  ASSERT_EQ(found.best.size(), 20U);
  for (const auto& ranked : found.best) {
    const auto taken = simulate(setting, bench, ranked.plan);
    EXPECT_EQ(taken.time, ranked.time) << core::to_text(ranked.plan);
    EXPECT_LE(static_cast<double>(taken.bytes), setting.cluster.gpu.memory_usable.value)
        << core::to_text(ranked.plan);
  }
}

TEST(BruteForce, FindsTheSameLegalPlans) {
  for (const Space& space :
       std::vector<Space>{{"llama-3.1-8b", "h100-sxm", 24, 48, 4096},
                          {"llama-3.2-3b", "h100-sxm", 16, 16, 4095},  // 24 heads, an odd sequence
                          {"qwen2-0.5b", "h100-sxm", 14, 28, 2048},    // 14 heads, 2 for keys
                          {"gpt2-xl", "a100-sxm-80", 25, 50, 1024},    // 25 heads
                          {"tiny-gpt", "h100-sxm", 1, 12, 64}}) {
    const auto setting = setting_of(space);
    const simulator::Bench bench(setting);
    const auto question = question_of(space, setting);
    const auto found = search(setting, bench, question, plain_axes(question));
    EXPECT_EQ(found.searched, static_cast<std::int64_t>(brute_force(space, setting).size()))
        << space.model;
  }
}

// Also schedules that are searched only when asked for: their times are those of the
// engine.
TEST(FixedSettings, AnyScheduleIsSearchedWithTheTimesOfItsSimulation) {
  const Space space{"tiny-llama", "h100-sxm", 8, 64, 64};
  const auto setting = setting_of(space);
  const simulator::Bench bench(setting);
  for (const auto* schedule : core::schedules::all()) {
    const auto question = question_of(space, setting, fmt::format("schedule={}", schedule->name));
    const auto found = search(setting, bench, question, plain_axes(question));
    ASSERT_GT(found.best.size(), 5U) << schedule->name;
    for (const auto& ranked : found.best) {
      EXPECT_EQ(ranked.plan.schedule, schedule->name);
      EXPECT_EQ(simulate(setting, bench, ranked.plan).time, ranked.time)
          << core::to_text(ranked.plan);
    }
  }
}

// What is fixed is held, and the answer is the best of the plans that hold it.
TEST(FixedSettings, AreHeld) {
  const Space space{"tiny-llama", "h100-sxm", 8, 16, 64};
  const auto setting = setting_of(space);
  const simulator::Bench bench(setting);
  SearchOptions all;
  all.keep = 1'000'000;
  const auto whole = search(
      setting, bench, question_of(space, setting), plain_axes(question_of(space, setting)), all);
  const auto texts = [](const SearchResult& result, const auto& holds) {
    std::vector<std::string> out;
    for (const auto& ranked : result.best) {
      if (holds(ranked.plan))
        out.push_back(fmt::format("{} {}", ranked.time, core::to_text(ranked.plan)));
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  const auto everything = [](const ParallelPlan&) { return true; };
  const auto check = [&](const std::string& fixed, const auto& holds) {
    const auto question = question_of(space, setting, fixed);
    const auto found = search(setting, bench, question, plain_axes(question), all);
    EXPECT_FALSE(found.best.empty()) << fixed;
    EXPECT_EQ(texts(found, everything), texts(whole, holds)) << fixed;
  };
  check("tp=2", [](const ParallelPlan& p) { return p.tp == 2; });
  check("pp=4 dp=2", [](const ParallelPlan& p) { return p.pp == 4 && p.dp == 2; });
  check("sp=0 zero=1", [](const ParallelPlan& p) { return !p.sp && p.zero == 1; });
  check("pp=2x2", [](const ParallelPlan& p) { return p.pp == 2 && p.vpp == 2; });
  check("schedule=gpipe mb=2",
        [](const ParallelPlan& p) { return p.schedule == "gpipe" && p.micro_batch == 2; });
  check("layers=slots tp=1",
        [](const ParallelPlan& p) { return p.layout == Layout::slots && p.tp == 1; });
}

// --- threads -------------------------------------------------------------------------------------

std::string text_of(const SearchResult& r) {
  auto out = fmt::format("{} {} {} {} {} {}\n",
                         r.searched,
                         r.evaluated,
                         r.pruned,
                         r.dominated,
                         r.memory_rejected,
                         r.cells);
  for (const auto& b : r.best)
    out += fmt::format("{} {} {} {}\n", b.time, b.block, b.order, core::to_text(b.plan));
  for (const auto& b : r.rejected)
    out += fmt::format("{} {} {} {}\n", b.reason, b.count, b.nearest, b.short_GiB);
  return out;
}

TEST(SearchThreads, LeaveEveryNumberAsItIs) {
  for (const Space& space : std::vector<Space>{{"llama-3.1-8b", "h100-sxm", 32, 64, 4096},
                                               {"llama-3.1-70b", "a100-sxm-80", 64, 64, 4096},
                                               {"gpt2-xl", "v100-sxm-32", 8, 24, 1024}}) {
    const auto setting = setting_of(space);
    const simulator::Bench bench(setting);
    const auto question = question_of(space, setting);
    const auto with = [&](int threads) {
      SearchOptions options;
      options.threads = threads;
      return text_of(search(setting, bench, question, plain_axes(question), options));
    };
    const auto one = with(1);
    EXPECT_EQ(with(2), one) << space.model;
    EXPECT_EQ(with(4), one) << space.model;
    EXPECT_EQ(with(1), one) << space.model;
  }
}

// --- nothing fits --------------------------------------------------------------------------------

// Field case F68: llama-3.1-70b on two GPUs of 24 GB. At 18 bytes a parameter over two GPUs 591 GiB
// are needed before anything else; the nearest miss says what it lacks.
TEST(NoPlan, SaysWhy) {
  auto cluster = core::make_cluster("a100-pcie-40", 2);
  cluster.gpu.memory_usable = core::Bytes{24e9};
  auto setting = setting_of({"llama-3.1-70b", "a100-pcie-40", 2, 4, 4096});
  setting.cluster = cluster;
  const simulator::Bench bench(setting);
  const auto question = question_of({"llama-3.1-70b", "a100-pcie-40", 2, 4, 4096}, setting);
  const auto found = search(setting, bench, question, plain_axes(question));
  EXPECT_TRUE(found.best.empty());
  EXPECT_EQ(found.feasible(), 0);
  EXPECT_GT(found.searched, 0);
  EXPECT_EQ(found.memory_rejected, found.searched);
  ASSERT_FALSE(found.rejected.empty());
  const auto& memory = found.rejected.front();
  EXPECT_EQ(memory.reason, "memory");
  EXPECT_EQ(memory.count, found.memory_rejected);
  const double states = 18 * 70553706496.0 / 2;
  EXPECT_GT(memory.short_GiB, (states - 24e9) / core::gibibyte);
  // What it says it lacks is what that plan lacks.
  const auto plan = core::parse_plan(memory.nearest, "nearest").plan;
  const auto taken = simulate(setting, bench, plan);
  EXPECT_NEAR(memory.short_GiB, (static_cast<double>(taken.bytes) - 24e9) / core::gibibyte, 1e-9);
  // Divisibility and batch are told apart, each with an example.
  bool degrees = false;
  for (const auto& rejection : found.rejected) {
    degrees = degrees || rejection.reason.find("pp") != std::string::npos ||
              rejection.reason.find("schedule") != std::string::npos;
    EXPECT_GT(rejection.count, 0);
    EXPECT_FALSE(rejection.nearest.empty());
  }
  EXPECT_TRUE(degrees);
}

// Experts' tokens travel as the question says, and by NCCL where there is no expert parallelism or --fix says so.
TEST(Search, TakesTheQuestionsDispatchForPlansWithExperts) {
  const auto setting = setting_of({"qwen3-30b-a3b", "h100-sxm", 16, 64, 4096});
  const simulator::Bench bench(setting);
  EXPECT_EQ(best_dispatch(bench.curves()), core::Dispatch::one_sided);
  const auto other = setting_of({"qwen3-30b-a3b", "l4", 8, 64, 4096});
  const simulator::Bench without(other);
  EXPECT_EQ(best_dispatch(without.curves()), core::Dispatch::nccl);
  for (const char* fixed : {"", "dispatch=nccl"}) {
    Question question;
    question.model = &setting.model;
    question.gpus = 16, question.global_batch = 64, question.seq = 4096;
    question.recipe = "bf16";
    question.fixed = core::parse_plan(fixed, "--fix");
    question.dispatch = core::Dispatch::one_sided;
    const planner::Space space(question, plain_axes(question));
    ASSERT_FALSE(space.units().empty());
    for (const auto& unit : space.units()) {
      const bool one_sided = unit.plan.ep > 1 && *fixed == '\0';
      EXPECT_EQ(unit.plan.dispatch, one_sided ? core::Dispatch::one_sided : core::Dispatch::nccl);
    }
  }
}

}  // namespace
}  // namespace planner

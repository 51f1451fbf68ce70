#include "simulator/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "simulator/request.h"

namespace simulator {
namespace {

struct Explained {
  Setting setting;
  SimulatedStep step;
};

Explained step_of(const std::string& plan_text,
                  std::int64_t gpus,
                  const std::string& gpu = "h100-sxm",
                  const std::string& model = "llama-3.1-8b") {
  Request request;
  request.model = model, request.gpu = gpu, request.gpus = gpus, request.seq = 2048;
  Explained e{make_setting(request), {}};
  auto plan = core::complete_plan(core::parse_plan(plan_text, "plan"), e.setting.model, gpus, 64, e.setting.cluster.node.gpus);
  plan.recipe = e.setting.recipe.name;
  e.step = simulate_step(e.setting, Bench(e.setting), plan, core::Grain::mixed, core::Fold::yes, Detail::answer);
  return e;
}

std::vector<Explanation> explained(const Explained& e, const std::string& name) {
  return explain(e.step, e.setting, Bench(e.setting), name);
}

double step_named(const Explanation& e, const std::string& what) {
  for (const auto& s : e.steps) {
    if (s.what == what) return s.value;
  }
  ADD_FAILURE() << e.name << ": no step " << what;
  return 0.0;
}

double figure_named(const Explanation& e, const std::string& key) {
  for (const auto& f : e.figures) {
    if (f.key == key) return f.values.front();
  }
  ADD_FAILURE() << e.name << ": no figure " << key;
  return 0.0;
}

TEST(Explain, AKernelBoundByMemoryIsBytesOverItsRatePlusFixed) {
  const auto e = step_of("tp=2 sp dp=4 mb=1 gbs=64", 8);
  const auto norm = explained(e, "norm").front();
  const double bandwidth = e.setting.cluster.gpu.memory_bandwidth.value;
  const double seconds = norm.bytes / (figure_named(norm, "memory_bound.norm.efficiency") * bandwidth) +
                         1e-6 * figure_named(norm, "memory_bound.fixed_us");
  EXPECT_NEAR(norm.alone_s, seconds, 1e-12);
  EXPECT_NEAR(norm.price_s, norm.factors.slowest * seconds + norm.factors.gap.value, 1e-11);
  EXPECT_EQ(norm.factors.held_back, 1.0);
}

TEST(Explain, AGemmIsWavesOfTilesPlusFixedUnderThePowerLimit) {
  const auto gemm = explained(step_of("tp=2 sp dp=4 mb=1 gbs=64", 8), "mlp_up").front();
  EXPECT_NEAR(step_named(gemm, "tensor cores"),
              step_named(gemm, "waves of tiles, the last one softened") * step_named(gemm, "a tile"), 1e-6);
  const double longer = std::max(step_named(gemm, "tensor cores"), step_named(gemm, "memory traffic, beside them"));
  EXPECT_NEAR(1e6 * gemm.alone_s, longer + step_named(gemm, "fixed"), 1e-6);
  EXPECT_NEAR(gemm.factors.held_back, 1.0 / figure_named(gemm, "sustained.rate"), 1e-12);
  EXPECT_NEAR(gemm.price_s, gemm.factors.slowest * gemm.factors.held_back * gemm.alone_s + gemm.factors.gap.value, 1e-11);
  EXPECT_GT(gemm.launches, 0);
}

TEST(Explain, ACollectiveTakesTheFastestAlgorithmAndNamesTheOthers) {
  const auto sum = explained(step_of("tp=8 dp=2 mb=1 gbs=64", 16), "tp_all_reduce").front();
  ASSERT_GT(sum.algorithms_s.size(), 1u);
  for (const auto& [name, seconds] : sum.algorithms_s) EXPECT_GE(seconds, sum.alone_s) << name;
  EXPECT_NEAR(sum.price_s, sum.alone_s, 1e-11);
  EXPECT_NE(sum.links.find("of 8"), std::string::npos) << sum.links;
}

TEST(Explain, HasThePriceThatTheEngineRan) {
  const auto e = step_of("tp=2 sp pp=2 dp=2 zero=1 mb=1 gbs=64", 8);
  std::size_t seen = 0;
  for (std::size_t i = 0; i < e.step.graph.specs.size(); ++i) {
    const auto& spec = e.step.graph.specs[i];
    if (spec.kind == core::OpKind::cell || spec.kind == core::OpKind::host || is_wait(spec)) continue;
    const auto all = explained(e, spec.name.str());
    const double price = core::to_seconds(e.step.prices[i].duration).value;
    const bool there = std::any_of(all.begin(), all.end(), [&](const Explanation& each) {
      return std::abs(each.price_s - price) < 1e-12 &&
             std::abs(each.factors.priced({core::Seconds{each.alone_s}, {}}).value - price) < 1e-11;
    });
    EXPECT_TRUE(there) << spec.name.str();
    ++seen;
  }
  EXPECT_GT(seen, 20u);
}

// What is named is all that the duration rests on: another value of any other figure leaves it where it is.
TEST(Explain, NamesEveryFigureThatMovesTheDuration) {
  const auto e = step_of("tp=8 dp=2 mb=1 gbs=64", 16);
  const Bench bench(e.setting);
  for (const auto* name : {"mlp_up", "core_attention", "norm", "tp_all_reduce", "adam"}) {
    const auto explanation = explained(e, name).front();
    const auto spec = std::find_if(e.step.graph.specs.begin(), e.step.graph.specs.end(),
                                   [&](const core::OpSpec& s) { return s.name == name; });
    std::size_t moved = 0;
    for (const auto& key : bench.curves().keys()) {
      auto values = bench.curves().values_of(key);
      for (auto& value : values) value *= 0.7;
      const Bench other(e.setting, bench.curves().with(key, values));
      const auto price = core::to_seconds(price_of(*spec, e.step.graph.groups, other.machine()).duration).value;
      const bool named = std::any_of(explanation.figures.begin(), explanation.figures.end(),
                                     [&](const UsedFigure& f) { return f.key == key; });
      const bool of_another_algorithm = key.starts_with("collectives.") && price < explanation.price_s;
      if (std::abs(price - explanation.price_s) < 1e-12 || of_another_algorithm) continue;
      EXPECT_TRUE(named) << name << ": " << key;
      ++moved;
    }
    // Of a collective most other values change the algorithm, which is not held here.
    EXPECT_GT(moved, is_collective(spec->kind) ? 0u : 1u) << name;
  }
}

TEST(Explain, TakesAPartThatOneNameHasAndNamesThoseThatItMayStandFor) {
  const auto e = step_of("tp=2 sp dp=4 mb=1 gbs=64", 8);
  EXPECT_EQ(explained(e, "activation_back").front().name, "activation_backward");
  const auto complaint = [&](const std::string& name) -> std::string {
    try {
      explained(e, name);
    } catch (const core::InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(complaint("mlp_do").find("mlp_down, mlp_down_input_gradient"), std::string::npos) << complaint("mlp_do");
  EXPECT_NE(complaint("mpl_up").find("did you mean mlp_up?"), std::string::npos) << complaint("mpl_up");
  EXPECT_NE(complaint("zzzzzzzzzz").find("expected one of activation"), std::string::npos);
}

TEST(Explain, ShowsWhatOverlapAndCalibrationDo) {
  auto e = step_of("dp=8 zero=3 mb=1 gbs=64", 8);
  calibrate(e.setting, {1.25, 1.5, 1.0, {}});
  const auto plan = e.step.report.plan;
  e.step = simulate_step(e.setting, Bench(e.setting), plan, core::Grain::op, core::Fold::yes, Detail::answer);
  const auto gemm = explained(e, "mlp_up").front();
  EXPECT_EQ(gemm.factors.corrected, 1.25);
  EXPECT_GE(gemm.in_step_s, gemm.price_s - 1e-12);  // gathers run beside it
  EXPECT_NE(explanation_text(gemm).find("x 1.25 by calibration"), std::string::npos) << explanation_text(gemm);
}

TEST(Recording, OfNestedOnesTheInnermostRecords) {
  const Recording outer;
  {
    const Recording inner;
    Recording::note("a", 1.0);
    Recording::read("key");
    EXPECT_EQ(inner.steps().size(), 1u);
  }
  Recording::note("b", 2.0, "us");
  Recording::read("key");
  Recording::read("key");
  ASSERT_EQ(outer.steps().size(), 1u);
  EXPECT_EQ(outer.steps()[0], (PriceStep{"b", 2.0, "us"}));
  EXPECT_EQ(outer.keys(), std::vector<std::string>{"key"});
}

// Of the time of the operations of the rank that ends last; an operation whose shapes rest on different ground counts by each.
TEST(OriginShares, SumToOneAndFollowTheTimeOfEachOrigin) {
  const auto h100 = step_of("tp=2 sp dp=4 mb=1 gbs=64", 8), unmeasured = step_of("dp=8 mb=1 gbs=64", 8, "mi300x");
  for (const auto* e : {&h100, &unmeasured}) {
    const auto& s = e->step.report.shares;
    EXPECT_NEAR(s.measured + s.fitted + s.roofline, 1.0, 1e-12);
  }
  EXPECT_GT(h100.step.report.shares.fitted, 0.8);
  EXPECT_NEAR(unmeasured.step.report.shares.fitted, 0.0, 1e-12);
  OperationTime mixed;
  mixed.seconds = 4.0, mixed.by_origin = {0.0, 3.0, 1.0};
  const auto shares = origin_shares({mixed});
  EXPECT_DOUBLE_EQ(shares.fitted, 0.75);
  EXPECT_DOUBLE_EQ(shares.roofline, 0.25);
}

}  // namespace
}  // namespace simulator

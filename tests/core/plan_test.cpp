#include "core/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/plan/dimension.h"
#include "tests/core/plans.h"

namespace core {
namespace {

std::string complaint(std::string_view text) {
  try {
    parse_plan(text, "--plan");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// --- text ----------------------------------------------------------------------------------------

TEST(PlanText, DefaultsAreWhatTheHeaderSays) {
  const auto text = parse_plan("", "--plan");
  EXPECT_EQ(text.plan, ParallelPlan{});
  EXPECT_EQ(to_text(text.plan),
            "tp=1 cp=1 pp=1 ep=1 etp=1 dp=1 zero=0 mb=1 gbs=1 schedule=1f1b recompute=none "
            "layers=even overlap=both "
            "offload=none recipe=bf16");
  EXPECT_FALSE(text.has_dp || text.has_global_batch || text.has_zero || text.has_layout ||
               text.has_recipe || text.has_schedule);
  EXPECT_TRUE(text.keys.empty());
}

TEST(PlanText, ReadsEveryKey) {
  const auto text = parse_plan(
      "tp=8 sp cp=1 pp=4x2 ep=1 etp=1 dp=2 zero=3 mb=5 gbs=1020 schedule=gpipe recompute=full:3 "
      "layers=7/8/8/7 "
      "overlap=parameters offload=none recipe=fp8",
      "--plan");
  ParallelPlan expected;
  expected.tp = 8, expected.sp = true, expected.pp = 4, expected.vpp = 2, expected.dp = 2,
  expected.zero = 3;
  expected.micro_batch = 5, expected.global_batch = 1020;
  expected.schedule = "gpipe";
  expected.recompute = Recompute::full, expected.recompute_layers = 3;
  expected.layout = Layout::given, expected.layers = {7, 8, 8, 7};
  expected.overlap_gradients = false;
  expected.recipe = "fp8";
  EXPECT_EQ(text.plan, expected);
  EXPECT_TRUE(text.has_dp && text.has_global_batch && text.has_zero && text.has_layout &&
              text.has_recipe && text.has_schedule);
  EXPECT_EQ(text.plan.gpus(), 8 * 4 * 2);
  EXPECT_EQ(text.plan.stages(), 4 * 2);
  EXPECT_EQ(text.plan.micro_batches(), 1020 / (5 * 2));
}

TEST(PlanText, TakesKeysInAnyOrderAndShortForms) {
  EXPECT_EQ(plans::plan("pp=4x2 tp=2"), plans::plan("vpp=2 tp=2 pp=4"));
  EXPECT_EQ(plans::plan("pp=4x2").schedule, "interleaved");
  EXPECT_EQ(plans::plan("pp=4x2 schedule=1f1b").schedule, "1f1b");
  EXPECT_TRUE(plans::plan("sp").sp);
  EXPECT_TRUE(plans::plan("sp=1").sp);
  EXPECT_FALSE(plans::plan("sp=0").sp);
  EXPECT_EQ(plans::plan("overlap=none tp=2"), plans::plan(" \t tp=2\noverlap=none "));
  for (const std::string overlap : {"both", "gradients", "parameters", "none"}) {
    const auto plan = plans::plan("overlap=" + overlap);
    EXPECT_EQ(plan.overlap_gradients, overlap == "both" || overlap == "gradients");
    EXPECT_EQ(plan.overlap_parameters, overlap == "both" || overlap == "parameters");
  }
  EXPECT_EQ(plans::plan("recompute=full").recompute_layers, 0);
  EXPECT_EQ(plans::plan("recompute=selective").recompute, Recompute::selective);
  EXPECT_EQ(plans::plan("layers=slots").layout, Layout::slots);
  EXPECT_EQ(plans::plan("layers=5").layers, std::vector<std::int64_t>{5});
}

TEST(PlanText, ReadsBackAllPlansOfAGrid) {
  std::size_t n = 0;
  for (const std::string name : {"tiny-gpt", "tiny-llama"}) {
    for (const auto& plan : plans::grid(load_model(name), 4, 64)) {
      EXPECT_EQ(parse_plan(to_text(plan), "--plan").plan, plan) << to_text(plan);
      ++n;
    }
  }
  EXPECT_GT(n, 100U);
}

TEST(PlanText, MisspeltKeysAreNamedWithTheNearestKnownOne) {
  EXPECT_EQ(complaint("tpp=2"), "--plan: tpp: unknown key; did you mean tp?");
  EXPECT_TRUE(has(complaint("schedul=1f1b"), "did you mean schedule?"));
  EXPECT_TRUE(has(complaint("recomput=full"), "did you mean recompute?"));
  EXPECT_TRUE(has(complaint("overlapp=none"), "did you mean overlap?"));
  EXPECT_TRUE(has(complaint("quantum=1"), "known keys are tp sp cp pp vpp"))
      << complaint("quantum=1");
}

TEST(PlanText, RefusesWhatItCannotMean) {
  EXPECT_EQ(complaint("tp=2 dp=1 tp=4"), "--plan: tp: given twice, expected once");
  EXPECT_TRUE(has(complaint("pp=4x2 vpp=2"), "vpp"));
  EXPECT_TRUE(has(complaint("vpp=2 pp=4x2"), "vpp"));
  EXPECT_EQ(complaint("cp=2:star"),
            "--plan: cp: found \"2:star\", expected a number of ranks, and how: 4, 4:ring, "
            "4:all-gather, 4:ulysses, 4:ring:unbalanced");
  EXPECT_EQ(complaint("offload=gradients"),
            "--plan: offload: found \"gradients\", expected none, or optimizer, weights and "
            "activations joined with +");
  EXPECT_EQ(complaint("shard=p:all,g:none,o:all"),
            "--plan: shard: found \"p:all,g:none,o:all\", expected the groups of o, g and p from "
            "the largest to the smallest: what is shared before must be after");
  EXPECT_EQ(complaint("zero=1 shard=p:none,g:none,o:all"),
            "--plan: shard: found \"p:none,g:none,o:all\", expected one of zero=N and shard=..., "
            "not both");
  EXPECT_EQ(complaint("schedule=zigzag"),
            "--plan: schedule: found \"zigzag\", expected one of dualpipe, dualpipev, gpipe, "
            "interleaved, interleaved-a2a, 1f1b, 1f1b-a2a, v-half, v-min, zb-h1, zb-h2, zb-v");
  EXPECT_EQ(complaint("zero=4"), "--plan: zero: found \"4\", expected a whole number from 0 to 3");
  EXPECT_EQ(complaint("overlap=some"),
            "--plan: overlap: found \"some\", expected both, gradients, parameters or none, "
            "and tensor and experts joined with +");
  EXPECT_EQ(complaint("tp"), "--plan: found \"tp\", expected key=value; did you mean tp?");
  for (const std::string wrong : {"tp=0",
                                  "tp=-1",
                                  "tp=two",
                                  "tp=",
                                  "tp=2.0",
                                  "tp=99999999999999999999",
                                  "pp=4x",
                                  "pp=x2",
                                  "mb=0",
                                  "gbs=0",
                                  "dp=0",
                                  "sp=2",
                                  "recompute=partial",
                                  "recompute=selective:2",
                                  "recompute=full:0",
                                  "layers=",
                                  "layers=7//8",
                                  "layers=7/8/",
                                  "layers=-1/31"}) {
    const auto message = complaint(wrong);
    const auto key = wrong.substr(0, wrong.find('='));
    EXPECT_TRUE(has(message, "--plan: " + key + ": found \"") && has(message, "expected"))
        << wrong << ": " << message;
  }
}

// --- what a text leaves open ---------------------------------------------------------------------

TEST(PlanCompletion, FillsWhatIsNotSaid) {
  const auto model = load_model("tiny-llama");  // 4 layers
  const auto complete = [&](const std::string& text, std::int64_t gpus) {
    return complete_plan(parse_plan(text, "--plan"), model, gpus, 64);
  };
  const auto open = complete("tp=2 pp=2", 16);
  EXPECT_EQ(open.dp, 16 / (2 * 2));
  EXPECT_EQ(open.zero, 1);
  EXPECT_EQ(open.global_batch, 64);
  EXPECT_EQ(open.layout, Layout::even);
  EXPECT_EQ(complete("tp=2", 2).zero, 0);                // nobody to share with
  EXPECT_EQ(complete("pp=3", 3).layout, Layout::slots);  // 4 layers on 3 stages
  const auto said = complete("tp=2 pp=3 dp=1 zero=0 gbs=8 layers=even", 16);
  EXPECT_EQ(said.dp, 1);
  EXPECT_EQ(said.zero, 0);
  EXPECT_EQ(said.global_batch, 8);
  EXPECT_EQ(said.layout, Layout::even);
}

// --- layouts -------------------------------------------------------------------------------------

ModelSpec with_layers(std::int64_t layers) {
  static const ModelSpec tiny = load_model("tiny-llama");
  auto model = tiny;
  model.layer_kind.assign(static_cast<std::size_t>(layers), 0);
  return model;
}

TEST(Layouts, AlwaysAddUpToTheLayers) {
  std::mt19937_64 rng(1);
  int tried = 0;
  for (int i = 0; i < 20000; ++i) {
    ParallelPlan plan;
    const auto layers = 1 + static_cast<std::int64_t>(rng() % 130);
    plan.pp = 1 + static_cast<std::int64_t>(rng() % 17);
    plan.vpp = plan.pp > 1 ? 1 + static_cast<std::int64_t>(rng() % 6) : 1;
    plan.schedule = plan.vpp > 1 ? "interleaved" : "1f1b";
    plan.global_batch = plan.pp;
    plan.layout = rng() % 2 == 0 ? Layout::even : Layout::slots;
    if (why_not(with_layers(layers), plan, plan.pp, 64)) continue;
    ++tried;
    const auto stages = layers_of_stages(plan, layers);
    ASSERT_EQ(static_cast<std::int64_t>(stages.size()), plan.stages());
    EXPECT_EQ(std::accumulate(stages.begin(), stages.end(), std::int64_t{0}), layers)
        << to_text(plan);
    EXPECT_GE(*std::min_element(stages.begin(), stages.end()), 0) << to_text(plan);
    // The embedding and the output count as a layer each: no stage has two slots more than another.
    auto slots = stages;
    if (plan.layout == Layout::slots) {
      slots.front() += 1;
      slots.back() += 1;
    }
    const auto [least, most] = std::minmax_element(slots.begin(), slots.end());
    EXPECT_LE(*most - *least, plan.layout == Layout::even ? 0 : 1) << to_text(plan);
  }
  EXPECT_GT(tried, 3000);
}

// What is left over goes to the middle stages from the back: early stages hold the most
// activations, the last has the output layer. 31 + 2 slots on 4 stages are 8 each and one more.
TEST(Layouts, RemaindersGoToTheMiddleFromTheBack) {
  const auto stages = [](std::int64_t layers, const std::string& pp) {
    return layers_of_stages(plans::plan("layers=slots pp=" + pp), layers);
  };
  EXPECT_EQ(stages(31, "4"), (std::vector<std::int64_t>{8 - 1, 8, 8 + 1, 8 - 1}));
  EXPECT_EQ(stages(32, "4"), (std::vector<std::int64_t>{8 - 1, 8 + 1, 8 + 1, 8 - 1}));
  EXPECT_EQ(stages(33, "4"), (std::vector<std::int64_t>{8, 8 + 1, 8 + 1, 8 - 1}));
  EXPECT_EQ(stages(14, "2x2"), (std::vector<std::int64_t>{4 - 1, 4, 4, 4 - 1}));
}

// Field case F10: 30 layers on 4 stages, nothing said on uneven ones.
TEST(Layouts, ThirtyLayersOnFourStagesAreSharedOutOrRefused) {
  const auto model = with_layers(30);
  const auto open = complete_plan(parse_plan("pp=4", "--plan"), model, 4, 4);
  EXPECT_EQ(why_not(model, open, 4, 64), std::nullopt);
  const auto stages = layers_of_stages(open, 30);
  EXPECT_EQ(std::accumulate(stages.begin(), stages.end(), std::int64_t{0}), 30);
  // (30 + 2) / 4 slots each, the first and the last with a table in one of them.
  EXPECT_EQ(stages, (std::vector<std::int64_t>{7, 8, 8, 7}));
  const auto even = complete_plan(parse_plan("pp=4 layers=even", "--plan"), model, 4, 4);
  const auto reason = why_not(model, even, 4, 64).value_or("legal");
  EXPECT_TRUE(has(reason, "30 layers") && has(reason, "pp=4")) << reason;
}

// Field case F12: 7 layers on 2 stages.
TEST(Layouts, SevenLayersOnTwoStagesAreThreeAndFour) {
  const auto model = with_layers(7);
  const auto open = complete_plan(parse_plan("pp=2", "--plan"), model, 2, 2);
  auto stages = layers_of_stages(open, 7);
  std::sort(stages.begin(), stages.end());
  EXPECT_EQ(stages, (std::vector<std::int64_t>{3, 4}));
  for (const std::string given : {"layers=3/4", "layers=4/3"}) {
    const auto plan = complete_plan(parse_plan("pp=2 " + given, "--plan"), model, 2, 2);
    EXPECT_EQ(why_not(model, plan, 2, 64), std::nullopt);
    EXPECT_EQ(layers_of_stages(plan, 7), plan.layers);
  }
}

TEST(Layouts, ListsMustFitTheStagesAndTheLayers) {
  const auto model = with_layers(8);
  const auto reason = [&](const std::string& text) {
    return why_not(model, plans::plan(text), plans::plan(text).gpus(), 64).value_or("legal");
  };
  EXPECT_EQ(reason("pp=4 gbs=4 layers=1/2/2/3"), "legal");
  EXPECT_EQ(reason("pp=4 gbs=4 layers=1/2/2"), "layers= lists 3 stages, pp=4 x vpp=1 has 4");
  EXPECT_EQ(reason("pp=4 gbs=4 layers=1/2/2/2"), "layers= sums to 7, the model has 8 layers");
}

// --- sizes that do not divide --------------------------------------------------------------------

// Each one sentence that names both numbers and the flag.
TEST(WhyNot, NamesBothNumbersAndTheFlag) {
  const auto reason = [](const ModelSpec& model, const std::string& text, std::int64_t seq = 64) {
    const auto plan = plans::plan(text);
    return why_not(model, plan, plan.gpus(), seq).value_or("legal");
  };
  EXPECT_EQ(reason(load_model("llama-3.2-3b"), "tp=16"), "24 heads do not divide by tp=16");
  EXPECT_EQ(reason(with_layers(61), "pp=8 gbs=8"),
            "61 layers do not divide by pp=8 x vpp=1; layers=slots shares them out unevenly");
  EXPECT_EQ(reason(load_model("tiny-llama"), "dp=8 mb=3 gbs=100"),
            "global batch gbs=100 does not divide by dp=8 x micro-batch mb=3");
  EXPECT_EQ(reason(load_model("tiny-llama"), "tp=8 sp", 100),
            "sequence 100 does not divide by tp=8 (sequence parallel)");
  EXPECT_EQ(reason(load_model("tiny-llama"), "pp=2x2 gbs=1"),
            "1 micro-batches are fewer than pp=2 (schedule interleaved)");
  // 8 heads and 2 key-value heads: 8 ranks hold a copy of one each, so that tp=8 is legal.
  EXPECT_EQ(reason(load_model("tiny-llama"), "tp=8"), "legal");
  auto odd = load_model("tiny-llama");
  for (auto& block : odd.kinds[0].blocks) {
    if (block.kind == "mlp") block.shape.set("ffn", 190);
  }
  EXPECT_EQ(reason(odd, "tp=4"), "ffn 190 does not divide by tp=4");
  for (auto& block : odd.kinds[0].blocks) {
    if (block.kind == "attention") block.shape.set("heads", 12), block.shape.set("kv_heads", 6);
  }
  EXPECT_EQ(reason(odd, "tp=4"), "6 key-value heads do not divide by tp=4");
  const auto plan = plans::plan("tp=2 pp=2 dp=2 gbs=2");
  EXPECT_EQ(why_not(load_model("tiny-llama"), plan, 16, 64),
            "tp=2 x pp=2 x dp=2 is 8 GPUs, not the 16 asked for");
}

TEST(Notes, SayWhatDoesNothing) {
  EXPECT_TRUE(notes_on(plans::plan("tp=2 sp dp=2 zero=1")).empty());
  EXPECT_EQ(notes_on(plans::plan("sp")), std::vector<std::string>{"sp does nothing at tp=1"});
  EXPECT_TRUE(has(notes_on(plans::plan("zero=1")).at(0), "zero=1 does nothing at dp=1"));
}

// Levels matter to gathers and scatters over several ranks in each of several nodes.
TEST(Notes, SayWhereCollectivesHaveNoLevels) {
  const auto note = [](const std::string& text) {
    const auto notes = notes_on(plans::plan(text + " collectives=hierarchical"), 8);
    return notes.empty() ? "none" : notes.back();
  };
  EXPECT_EQ(note("dp=16"), "collectives=hierarchical does nothing at zero=0: no states are gathered or scattered");
  const std::string inside =
      "collectives=hierarchical does nothing: no group of dense states has several ranks in each of several nodes of 8 GPUs";
  EXPECT_EQ(note("dp=8 zero=3"), inside);              // one node
  EXPECT_EQ(note("tp=8 dp=8 zero=1"), inside);         // one rank in each node
  EXPECT_EQ(note("dp=16 shard=p:8,g:8,o:8"), inside);  // all-reduces alone go between nodes
  EXPECT_EQ(note("dp=16 shard=p:8,g:8,o:all"), inside);  // 8 ranks inside, then one rank of each node
  EXPECT_EQ(note("dp=16 zero=1"), "none");
  EXPECT_EQ(note("tp=4 sp dp=4 zero=1"), "none");
  EXPECT_EQ(note("dp=16 shard=p:8,g:all,o:all"), "none");
  EXPECT_EQ(note("dp=32 ep=2 expert-zero=1"), "none");
  EXPECT_TRUE(has(note("dp=16 ep=8 shard=p:none,g:none,o:8 expert-zero=1"), "no group of shared states"));
  // Without a machine only what no machine changes is said.
  EXPECT_TRUE(notes_on(plans::plan("dp=8 zero=3 collectives=hierarchical")).empty());
}

TEST(PlanText, SaysHowCollectivesPassNodesWhereNotFlat) {
  EXPECT_EQ(plans::plan("collectives=flat"), ParallelPlan{});
  for (const auto kind : {Collectives::hierarchical, Collectives::overlapping}) {
    ParallelPlan plan;
    plan.collectives = kind;
    EXPECT_TRUE(to_text(plan).ends_with(" collectives=" + std::string(name_of(kind))));
    EXPECT_EQ(parse_plan(to_text(plan), "--plan").plan, plan);
  }
  EXPECT_EQ(complaint("collectives=ring"),
            "--plan: collectives: found \"ring\", expected flat or hierarchical or overlapping");
}

TEST(PlanText, HasReductionsOfRuns) {
  const auto plan = plans::plan("dp=4 zero=2 gbs=4 reduce=runs");
  EXPECT_TRUE(plan.reduce_runs);
  EXPECT_EQ(plans::plan(to_text(plan)), plan);
  EXPECT_EQ(plans::plan("reduce=each"), ParallelPlan{});
  EXPECT_EQ(complaint("reduce=often"), "--plan: reduce: found \"often\", expected each or runs");
  const auto model = load_model("tiny-llama");
  const auto reason = [&](const std::string& text) {
    const auto p = plans::plan(text);
    return why_not(model, p, p.gpus(), 64).value_or("");
  };
  EXPECT_EQ(reason("dp=4 zero=2 gbs=4 reduce=runs"), "");
  EXPECT_EQ(reason("dp=4 zero=1 gbs=4 reduce=runs"), "reduce=runs with zero=1: expected zero=2, sharded gradients of whole parameters");
  EXPECT_NE(reason("pp=2 dp=2 zero=2 gbs=8 schedule=zb-h1 reduce=runs").find("expected a schedule of whole backwards"), std::string::npos);
}

}  // namespace
}  // namespace core

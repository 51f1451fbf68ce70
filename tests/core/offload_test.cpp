// Offload to the host: bytes over the link in a step, memory of GPU and host, against closed forms.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/graph/lower.h"
#include "core/graph/memory.h"
#include "tests/core/plans.h"

namespace core {
namespace {

constexpr double GB = 1e9, GiB = 1024.0 * 1024.0 * 1024.0;

// Parameters of tiny-llama, as in work_test.cpp.
constexpr double whole = 2 * 256 * 64 + 4 * (2 * 64 * 64 + 2 * 64 * 16 + 3 * 64 * 192 + 2 * 64) + 64;

struct Copies {
  double to_host = 0.0, to_device = 0.0;
};

void expect_copies(const std::string& text, const Copies& expected) {
  const auto model = load_model("tiny-llama");
  const auto plan = plans::plan(text);
  const auto work = plans::step(model, plan, 64);
  for (const auto grain : {Grain::cell, Grain::mixed, Grain::op}) {
    const auto graph = lower(work, plans::table(plan), grain);
    EXPECT_DOUBLE_EQ(graph.bytes(0, OpKind::copy_to_host).value, expected.to_host) << text;
    EXPECT_DOUBLE_EQ(graph.bytes(0, OpKind::copy_to_device).value, expected.to_device) << text;
  }
}

// ZeRO-Offload (arXiv 2101.06840, section 4.1) with recipe bf16 (weights 2 bytes, gradients reduced and accumulated in fp32):
// gradients go out and updated 16-bit weights come back, each a rank's part.
TEST(Offload, OfTheOptimizerMovesGradientsOutAndWeightsBack) {
  const double m = 3, fp32 = 4, bf16 = 2;
  for (const std::string overlap : {"both", "none"}) {
    const auto with = [&](const std::string& plan) { return plan + " gbs=12 overlap=" + overlap + " offload=optimizer"; };
    expect_copies(with("dp=4 zero=0"), {fp32 * whole, bf16 * whole});
    expect_copies(with("dp=4 zero=1"), {fp32 * whole / 4, bf16 * whole / 4});
    // Reduced after each micro-batch, they go out each time.
    expect_copies(with("dp=4 zero=2"), {m * fp32 * whole / 4, bf16 * whole / 4});
    expect_copies(with("dp=4 zero=3"), {m * fp32 * whole / 4, bf16 * whole / 4});
    // Not where more reductions follow after the last: two groups of two.
    expect_copies(with("dp=4 shard=p:none,g:2,o:2"), {fp32 * whole / 2, bf16 * whole / 2});
  }
  expect_copies("dp=1 zero=0 gbs=3 offload=optimizer", {fp32 * whole, bf16 * whole});
  expect_copies("dp=1 zero=2 gbs=3 offload=optimizer", {m * fp32 * whole, bf16 * whole});
}

// ZeRO-Infinity (arXiv 2104.07857, section 5.1): each rank brings its part of a layer before each gather, forward and backward.
TEST(Offload, OfWeightsBringsEachRanksPartBeforeEachUse) {
  const double m = 3, fp32 = 4, bf16 = 2;
  expect_copies("dp=4 zero=3 gbs=12 offload=weights", {bf16 * whole / 4, m * 2 * bf16 * whole / 4});
  // The optimizer's weights stay where they are.
  expect_copies("dp=4 zero=3 gbs=12 offload=optimizer+weights", {m * fp32 * whole / 4, m * 2 * bf16 * whole / 4});
  expect_copies("dp=1 zero=3 gbs=3 offload=optimizer+weights", {m * fp32 * whole, m * 2 * bf16 * whole});
  // Parameters over 2 of 4 ranks: the optimizer's quarters come to the device, are gathered there to halves and go back.
  expect_copies("dp=4 shard=p:2,g:all,o:all gbs=12 offload=optimizer+weights",
                {m * fp32 * whole / 4 + bf16 * whole / 2, m * 2 * bf16 * whole / 2 + bf16 * whole / 4});
}

// Of activations: what layers keep, once out and once back; the embedding's and the output's stay.
TEST(Offload, OfActivationsMovesWhatLayersKeep) {
  const auto model = load_model("tiny-llama");
  for (const std::string recompute : {"none", "full"}) {
    const auto text = "pp=2 gbs=6 recompute=" + recompute;
    const auto kept = plans::step(model, plans::plan(text), 64);
    double layer = 0.0;
    for (const auto& s : kept.bodies[kept.stages[0].bodies[1]].saved) layer += s.bytes.value;
    if (recompute == "full") {
      EXPECT_DOUBLE_EQ(layer, 2.0 * 64 * 64);  // its input, 16 bits
    }
    const double m = 6, layers = 2;
    expect_copies(text + " offload=activations", {m * layers * layer, m * layers * layer});
  }
}

// Two layers' worth stay on the device, whatever the number of layers and micro-batches; the rest is on the host.
TEST(Offload, OfActivationsLeavesTwoLayersOnTheDevice) {
  const auto model = load_model("llama-3.1-8b");
  const auto framework = load_framework("megatron", "hopper");
  const auto kept = plans::step(model, plans::plan("gbs=1"), 4096);
  const auto gone = plans::step(model, plans::plan("gbs=1 offload=activations"), 4096);
  const auto layer = kept.stages[0].bodies[1];
  const auto before = body_memory(kept.bodies[layer], framework), after = body_memory(gone.bodies[layer], framework);
  double saved = 0.0;
  for (const auto& s : kept.bodies[layer].saved) saved += s.bytes.value;
  EXPECT_EQ(after.saved(), 0);
  EXPECT_DOUBLE_EQ(static_cast<double>(after.host), saved);
  EXPECT_NEAR(static_cast<double>(after.forward_transient - before.forward_transient), 2 * saved, 512);
  EXPECT_NEAR(static_cast<double>(after.backward_transient - before.backward_transient), 2 * saved, 512);
  CellMemory few, many;
  few.add(after, 2);
  many.add(after, 32);
  EXPECT_EQ(few.forward_peak, many.forward_peak);
  EXPECT_EQ(many.host, 16 * few.host);
}

// On the host are as many micro-batches' activations as are in flight: p - r of 1F1B (Narayanan et al. 2021, section 2.2).
TEST(Offload, OfActivationsKeepsTheMicroBatchesInFlightOnTheHost) {
  const auto plan = plans::plan("pp=4 gbs=8");
  const auto peaks = host_activations(plans::table(plan), {1.0, 1.0, 1.0, 1.0});
  EXPECT_EQ(peaks, (std::vector<double>{4.0, 3.0, 2.0, 1.0}));
  const auto all = host_activations(plans::table(plans::plan("pp=2 gbs=8 schedule=gpipe")), {2.0, 3.0});
  EXPECT_EQ(all, (std::vector<double>{16.0, 24.0}));
}

// The node that needs most: pipeline ranks of 4 GPUs on nodes of 8, then of 8 on nodes of 4 and of 6 on nodes of 4.
TEST(Offload, HostMemoryIsThatOfTheFullestNode) {
  auto framework = load_framework("megatron", "hopper");
  framework.host_memory_factor = 1.5;
  EXPECT_DOUBLE_EQ(node_host_memory({5, 1, 2, 3}, plans::plan("pp=4 dp=4 gbs=16"), 8, framework), 1.5 * 4 * (5 + 1));
  EXPECT_DOUBLE_EQ(node_host_memory({5, 7}, plans::plan("pp=2 dp=8 gbs=16"), 4, framework), 1.5 * 4 * 7);
  EXPECT_DOUBLE_EQ(node_host_memory({1, 2}, plans::plan("pp=2 dp=6 gbs=12"), 4, framework), 1.5 * 4 * 2);
  EXPECT_DOUBLE_EQ(node_host_memory({4, 1}, plans::plan("pp=2 dp=3 gbs=6"), 4, framework), 1.5 * (3 * 4 + 1));
}

RankParameters parameters(double all, double largest) {
  RankParameters p;
  p.all.dense = p.gemm.dense = all;
  p.largest_body = largest;
  return p;
}

// Field case F13: DeepSpeed's estimator for 6,805M parameters on 4 GPUs in a node. On each GPU 3.66 GiB with the optimizer on
// the host, 0.49 GiB with the weights there too, of which 4 bytes of the largest layer (131M): its weights and its gradients. On
// the host 152 and 171 GiB with a buffer factor of 1.5. What trains needs more, each on its line.
TEST(Offload, OfZeroThreeIsTheEstimators) {
  const auto p = parameters(6805e6, 131e6);
  const auto recipe = load_recipe("bf16");
  auto framework = load_framework("deepspeed", "hopper");
  const auto states = [&](const MemoryTerms& m) {
    double sum = 0.0;
    for (const auto term : {MemoryTerm::weights, MemoryTerm::gradients, MemoryTerm::optimizer}) {
      sum += static_cast<double>(m[index_of(term)]);
    }
    return sum;
  };
  const auto optimizer = plans::plan("dp=4 zero=3 gbs=4 offload=optimizer");
  const auto both = plans::plan("dp=4 zero=3 gbs=4 offload=optimizer+weights");
  EXPECT_NEAR((states(resident_memory(p, optimizer, recipe, framework)) + 4 * p.largest_body) / GiB, 3.66, 0.0366);
  const auto terms = resident_memory(p, both, recipe, framework);
  // The live weights: the layer that computes and what is fetched ahead of it.
  EXPECT_NEAR(states(terms), 2 * (p.largest_body + *framework.prefetch_parameters), 512);
  EXPECT_NEAR((states(terms) - 2 * *framework.prefetch_parameters + 2 * p.largest_body) / GiB, 0.49, 0.0049);
  EXPECT_GT(terms[index_of(MemoryTerm::buffers)], 0);
  EXPECT_GT(terms[index_of(MemoryTerm::context)], 0);
  framework.host_memory_factor = 1.5;
  for (const auto& [plan, expected] : {std::pair{optimizer, 152.0}, std::pair{both, 171.0}}) {
    EXPECT_NEAR(node_host_memory({host_memory(p, plan, recipe)}, plan, 8, framework) / GiB, expected, 0.01 * expected);
  }
}

// Field case F17: 32.5B parameters, ZeRO-3 over 8 GPUs, all on the host: 585 GB of states; 600 GB failed, 750 to 800 GB worked.
TEST(Offload, OfThirtyTwoBillionNeedsBetween650And850GB) {
  const auto plan = plans::plan("dp=8 zero=3 gbs=8 offload=optimizer+weights");
  const auto p = parameters(32.5e9, 1e9);
  const auto recipe = load_recipe("bf16");
  EXPECT_NEAR(8 * host_memory(p, plan, recipe), 585 * GB, 1.0);
  const auto need = node_host_memory({host_memory(p, plan, recipe)}, plan, 8, load_framework("deepspeed", "hopper"));
  EXPECT_GT(need, 650 * GB);
  EXPECT_LT(need, 850 * GB);
}

// Gradients on the rank: those of ZeRO 0 and 1 (F22: one buffer of the whole model), none where they go out as they are reduced.
TEST(Offload, KeepsGradientsWhereTheyAreAccumulated) {
  const auto recipe = load_recipe("bf16");
  const auto framework = load_framework("megatron", "hopper");
  const auto gradients = [&](const std::string& text) {
    return static_cast<double>(
        resident_memory(parameters(1e9, 0), plans::plan(text), recipe, framework)[index_of(MemoryTerm::gradients)]);
  };
  EXPECT_NEAR(gradients("dp=4 gbs=4 zero=1 offload=optimizer"), 4e9, 512);
  EXPECT_EQ(gradients("dp=4 gbs=4 zero=2 offload=optimizer"), 0);
  EXPECT_EQ(gradients("gbs=4 zero=2 offload=optimizer"), 0);
  EXPECT_NEAR(gradients("dp=4 gbs=4 shard=p:none,g:2,o:2 offload=optimizer"), 2e9, 512);
}

// On the host the update's traffic and the clearing of gradients there; on the device the clearing of those that stay.
TEST(Offload, OfTheOptimizerRunsOnTheHost) {
  const auto recipe = load_recipe("bf16");
  const auto p = parameters(8e9, 0);
  const auto traffic = optimizer_work(recipe, {1e9, 1e9, 0.0}).traffic.value;
  const auto kept = optimizer_specs(p, plans::plan("dp=8 zero=1 gbs=8 offload=optimizer"), recipe);
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].kind, OpKind::host_optimizer);
  EXPECT_DOUBLE_EQ(kept[0].bytes.value, traffic);
  EXPECT_EQ(kept[1].kind, OpKind::optimizer);
  EXPECT_DOUBLE_EQ(kept[1].bytes.value, 4 * 8e9);
  const auto gone = optimizer_specs(p, plans::plan("dp=8 zero=3 gbs=8 offload=optimizer"), recipe);
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_DOUBLE_EQ(gone[0].bytes.value, traffic + 4 * 1e9);
}

TEST(Offload, IsRefusedWhereItIsNotModelled) {
  const auto model = load_model("tiny-llama");
  const auto reason = [&](const std::string& text, std::int64_t gpus) {
    return why_not(model, plans::plan(text), gpus, 64).value_or("");
  };
  EXPECT_EQ(reason("dp=4 zero=1 gbs=4 offload=weights", 4), "offload=weights needs sharded parameters (zero=3)");
  EXPECT_NE(reason("pp=2 gbs=4 schedule=dualpipe offload=optimizer", 2).size(), 0U);
  EXPECT_EQ(reason("dp=4 zero=3 gbs=4 offload=optimizer+weights+activations", 4), "");
}

}  // namespace
}  // namespace core

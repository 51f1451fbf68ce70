// Experts: operations and saved bytes of one block against closed forms in its sizes.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/graph/step_work.h"
#include "tests/core/block_bodies.h"

namespace core {
namespace {

using block_bodies::body;
using block_bodies::bytes;
using block_bodies::find;
using block_bodies::gemm_flops;
using block_bodies::saved;
using block_bodies::Setting;

// Mixtral 8x7B: h 4096, 8 experts of 14336, 2 a token.
constexpr double h = 4096, F = 14336, E = 8, k = 2;
constexpr double sixteen_bits = 2.0;

ModelSpec mixtral() { return load_model("mixtral-8x7b"); }

// 2 FLOPs for each weight of the experts that a token uses and of the router; backward twice that.
TEST(MoeBlock, FlopsAreThoseOfTheActiveWeights) {
  const auto model = mixtral();
  const double t = 2048;
  const double forward = 2 * t * (k * 3 * h * F + h * E);
  for (const std::string plan : {"dp=8", "dp=8 ep=8", "dp=8 ep=4"}) {
    const Setting setting(model, plan, 2048);
    const auto one = body(model, "moe", setting.context);
    EXPECT_DOUBLE_EQ(gemm_flops(one.forward), forward) << plan;
    EXPECT_DOUBLE_EQ(gemm_flops(one.backward), 2 * forward) << plan;
  }
  // Sequence-parallel ranks share the tokens out; those of an expert tensor group compute each other's, divided.
  const Setting setting(model, "tp=4 sp ep=2 etp=2 dp=2", 2048);
  EXPECT_DOUBLE_EQ(gemm_flops(body(model, "moe", setting.context).forward), forward / 4);
}

// A step of the whole model: 6 FLOPs a token and weight that is multiplied, attention's causal half with its recomputed
// scores.
TEST(MoeBlock, FlopsOfAStepAreThoseOfTheActiveModel) {
  const auto model = mixtral();
  const double l = 32, V = 32000, s = 2048, B = 8;
  const double weights = l * (h * (h + 2 * 1024) + h * h + k * 3 * h * F + h * E) + h * V;
  const double attention = B * l * 3.5 * 2 * s * s * h;
  for (const std::string text : {"dp=8 gbs=8", "dp=8 ep=8 gbs=8", "tp=2 sp dp=4 ep=4 gbs=8 mb=2", "pp=2 dp=4 ep=4 gbs=8"}) {
    const auto plan = plans::plan(text);
    const auto graph = lower(plans::step(model, plan, 2048), plans::table(plan), Grain::op);
    double sum = 0.0;
    for (std::int32_t r = 0; r < graph.ranks; ++r) {
      sum += static_cast<double>(graph.multiplicity[static_cast<std::size_t>(r)]) * graph.flops(r).value;
    }
    EXPECT_NEAR(sum / (6 * B * s * weights + attention), 1.0, 1e-12) << text;
  }
}

// GShard (arXiv 2006.16668), section 3.2: each of top_k copies of a token is sent once and comes back once, in each
// direction.
TEST(MoeBlock, DispatchesEachCopyOnceAndCombinesIt) {
  const auto model = mixtral();
  const Setting setting(model, "dp=8 ep=8", 2048);
  const auto one = body(model, "moe", setting.context);
  const double copies = sixteen_bits * 2048 * k * h;
  for (const auto* name : {"dispatch", "combine"}) {
    const auto* op = find(one.forward, name);
    ASSERT_NE(op, nullptr);
    EXPECT_EQ(op->kind, OpKind::all_to_all);
    EXPECT_DOUBLE_EQ(op->bytes.value, copies);
    EXPECT_EQ(op->n, 2);
    EXPECT_EQ(op->k, 0);
  }
  EXPECT_DOUBLE_EQ(bytes(one.forward, OpKind::all_to_all), 2 * copies);
  EXPECT_DOUBLE_EQ(bytes(one.backward, OpKind::all_to_all), 2 * copies);
  for (const auto& op : one.forward) {
    EXPECT_EQ(op.scope == Scope::expert, op.spec.kind == OpKind::all_to_all) << op.spec.name.str();
  }
  // All experts on each rank: nothing travels.
  const Setting whole(model, "dp=8", 2048);
  EXPECT_DOUBLE_EQ(bytes(body(model, "moe", whole.context).forward, OpKind::all_to_all), 0.0);
}

// DeepSeek-V3, arXiv 2412.19437, section 2.1.2: 8 of 256 experts, from at most 4 of 8 nodes.
TEST(MoeBlock, SaysToHowManyNodesATokenGoes) {
  const auto model = load_model("deepseek-v3");
  const Setting setting(model, "dp=64 ep=64", 4096);
  const auto one = body(model, "moe", setting.context);
  const auto* op = find(one.forward, "dispatch");
  ASSERT_NE(op, nullptr);
  EXPECT_DOUBLE_EQ(op->bytes.value, sixteen_bits * 4096 * 8 * 7168);
  EXPECT_EQ(op->n, 8);
  EXPECT_EQ(op->k, 4);
  // One grouped kernel over the 4 experts of a rank, each with 4096 x 8 / 4 copies.
  const auto* up = find(one.forward, "experts_up");
  EXPECT_TRUE(up->grouped);
  EXPECT_EQ(up->batch, 4);
  EXPECT_EQ(up->m, 4096 * 8 / 4);
  EXPECT_EQ(up->n, 2 * 2048);
  EXPECT_EQ(up->k, 7168);
}

// Megatron-LM's overlap of the shared expert: dispatch beside its first layer, combine beside its second.
TEST(MoeBlock, AllToAllsRunBesideTheSharedExpertWhereThePlanSaysSo) {
  const auto model = load_model("deepseek-v3");
  for (const bool on : {false, true}) {
    const Setting setting(model, on ? "dp=64 ep=64 overlap=both+experts" : "dp=64 ep=64", 4096);
    const auto one = body(model, "moe", setting.context);
    for (std::size_t i = 0; i + 1 < one.forward.size(); ++i) {
      if (one.forward[i].scope != Scope::expert) continue;
      EXPECT_EQ(one.forward[i].overlaps_next, on);
      const bool first = one.forward[i].spec.name == "dispatch";
      EXPECT_EQ(one.forward[i + 1].spec.name, first ? "shared_up" : "shared_down");
    }
  }
}

// Without a gate what the router's weights multiply is kept as well; recompute of activations drops it.
TEST(MoeBlock, WithoutAGateTheActivationIsKeptBeforeItsWeights) {
  auto model = mixtral();
  for (auto& layer : model.kinds) {
    for (auto& block : layer.blocks) {
      if (block.kind == "moe") block.shape.set("gated", 0);
    }
  }
  const Setting setting(model, "dp=8 ep=8", 2048);
  const auto one = body(model, "moe", setting.context);
  const double activated = sixteen_bits * 2048 * k * F;
  double kept = 0.0, dropped = 0.0;
  for (const auto& tensor : one.saved) {
    if (!tensor.name.str().starts_with("experts activation")) continue;
    kept += tensor.bytes.value;
    if ((tensor.dropped_by & modules::activation) != 0) dropped += tensor.bytes.value;
  }
  EXPECT_DOUBLE_EQ(kept, 3 * activated);  // input, output, output weighted
  EXPECT_DOUBLE_EQ(dropped, 2 * activated);
}

// DeepSeek-V3, arXiv 2412.19437, section 3.3.3: tokens are dispatched in fp8 and combined in bf16.
TEST(MoeBlock, TokensTravelInTheRecipesWidths) {
  const auto model = mixtral();
  Setting setting(model, "dp=8 ep=8", 2048);
  setting.recipe.dispatch_bytes = setting.recipe.gradient_dispatch_bytes = 1.0;
  const auto one = body(model, "moe", setting.context);
  EXPECT_DOUBLE_EQ(find(one.forward, "dispatch")->bytes.value, 2048 * k * h);
  EXPECT_DOUBLE_EQ(find(one.forward, "combine")->bytes.value, sixteen_bits * 2048 * k * h);
  EXPECT_DOUBLE_EQ(find(one.backward, "combine_backward")->bytes.value, 2048 * k * h);
  EXPECT_DOUBLE_EQ(find(one.backward, "dispatch_backward")->bytes.value, sixteen_bits * 2048 * k * h);
}

TEST(MoeBlock, GathersCopiesOverExpertTensorRanks) {
  const auto model = mixtral();
  const Setting setting(model, "tp=4 sp ep=2 etp=2 dp=2", 2048);
  const auto one = body(model, "moe", setting.context);
  const double rows = 2048.0 / 4 * k * 2;
  EXPECT_DOUBLE_EQ(find(one.forward, "etp_all_gather")->bytes.value, sixteen_bits * rows * h);
  EXPECT_DOUBLE_EQ(find(one.forward, "etp_reduce_scatter")->bytes.value, sixteen_bits * rows * h);
  EXPECT_EQ(find(one.forward, "experts_up")->n, 2 * 14336 / 2);
  EXPECT_EQ(find(one.forward, "experts_up")->m, static_cast<std::int64_t>(rows / 4));
}

// What one rank keeps of t tokens in 16 bits (Megatron-LM): the input t h; scores in fp32 and a byte of choice for each
// expert; of k t copies the input h, gate and up 2 F, the activation's output F, and a weight in fp32.
double kept(double t, double experts, double copies_per_token, double width, double ffn) {
  const double copies = t * copies_per_token;
  return 2 * t * width + 5 * t * experts + 4 * copies + 2 * copies * width + 2 * copies * 3 * ffn;
}

TEST(MoeBlock, KeepsTheCopiesOfATokenAndWhatTheExpertsMakeOfThem) {
  const auto model = mixtral();
  const Setting setting(model, "dp=8 ep=8", 2048);
  EXPECT_DOUBLE_EQ(saved(body(model, "moe", setting.context)), kept(2048, E, k, h, F));
  // A shared expert of 2048 keeps gate, up and the activation's output, and reads the block's input.
  const auto deepseek = load_model("deepseek-v3");
  const Setting large(deepseek, "dp=64 ep=64", 4096);
  EXPECT_DOUBLE_EQ(saved(body(deepseek, "moe", large.context)),
                   kept(4096, 256, 8, 7168, 2048) + 2.0 * 4096 * 3 * 2048);
}

TEST(MoeBlock, TheFullestRankHasMoreCopies) {
  const auto model = mixtral();
  Setting setting(model, "dp=8 ep=8", 2048);
  setting.context.overload = 2.0;
  const auto one = body(model, "moe", setting.context);
  EXPECT_DOUBLE_EQ(saved(one), kept(2048, E, k * 2, h, F));
  EXPECT_EQ(find(one.forward, "experts_up")->m, 2 * 2048 * 2);
  // With a capacity factor each expert's share is padded to it, whatever the load.
  setting.context.capacity = 1.25;
  const auto padded = body(model, "moe", setting.context);
  EXPECT_EQ(find(padded.forward, "experts_up")->m, 2048 * 2 * 5 / 4);
  EXPECT_DOUBLE_EQ(find(padded.forward, "dispatch")->bytes.value, sixteen_bits * 2048 * k * 1.25 * h);
}

TEST(MoeBlock, RecomputeRepeatsAllToAllsAndKeepsTheInput) {
  const auto model = mixtral();
  const Setting setting(model, "dp=8 ep=8", 2048);
  const auto layer = bodies_of(model, setting.context).kinds.front();
  const auto whole = with_recompute(layer, Recompute::modules, modules::moe);
  const double dropped = kept(2048, E, k, h, F) - 2 * 2048 * h;
  EXPECT_DOUBLE_EQ(saved(layer) - saved(whole), dropped);
  double again = 0.0;
  for (const auto& op : whole.backward) {
    if (op.recompute && op.spec.kind == OpKind::all_to_all) again += op.spec.bytes.value;
  }
  EXPECT_DOUBLE_EQ(again, 2 * sixteen_bits * 2048 * k * h);
  // The activation's output alone: its GEMMs and all-to-alls are not repeated.
  const auto activation = with_recompute(layer, Recompute::modules, modules::activation);
  EXPECT_DOUBLE_EQ(saved(layer) - saved(activation), 2 * 2048 * k * F);
  for (const auto& op : activation.backward) {
    EXPECT_TRUE(!op.recompute || op.spec.kind == OpKind::memory_bound) << op.spec.name.str();
  }
}

// Field case of 30B-A3B on eight GPUs: 16 experts of each layer on a rank.
TEST(MoeBlock, SharesExpertsOutOverTheirRanks) {
  const auto model = load_model("qwen3-30b-a3b");
  const Setting setting(model, "dp=8 ep=8", 4096);
  const auto layer = bodies_of(model, setting.context).kinds.front();
  EXPECT_DOUBLE_EQ(layer.expert_parameters, 16.0 * 3 * 2048 * 768);
  const double all = 48 * (layer.parameters + 8 * layer.expert_parameters) + 2.0 * 151936 * 2048 + 2048;
  EXPECT_DOUBLE_EQ(all, static_cast<double>(count_parameters(model).total));
}

TEST(MoeBlock, TensorParallelismHasToDivideSharedExperts) {
  const auto model = load_model("qwen1.5-moe-a2.7b");
  EXPECT_EQ(why_not(model, plans::plan("tp=3 sp gbs=1"), 3, 3072), "16 heads do not divide by tp=3");
  EXPECT_EQ(why_not(model, plans::plan("tp=4 sp gbs=1"), 4, 4096), std::nullopt);
  const auto& block = block_bodies::block_of(model, "moe");
  EXPECT_EQ(block_kind("moe").why_not_tensor(block, 3), "5632 columns of the shared experts do not divide by tp=3");
}


// Graphs of whole layers hold the experts' GEMMs; those of attention and router leave them to the host.
TEST(MoeBlock, OnlyGraphsOfWholeLayersCaptureExperts) {
  const auto model = mixtral();
  for (const std::string graphs : {"none", "attention", "router", "attention+router", "layers"}) {
    const Setting setting(model, "dp=8 ep=4 graphs=" + graphs, 2048);
    const auto one = body(model, "moe", setting.context);
    for (const auto* ops : {&one.forward, &one.backward}) {
      for (const auto& op : *ops) {
        EXPECT_EQ(op.spec.captured, graphs == "layers" && op.spec.grouped) << graphs << ", " << op.spec.name.str();
      }
    }
  }
}

// gpt-oss-120b: h 2880, inner layers of 2 x 2880, 4 experts a token, 16 of 128 on a rank.
double bytes_of(const std::vector<BodyOp>& ops, const char* name) {
  const auto* op = find(ops, name);
  return op == nullptr ? 0.0 : op->bytes.value;
}

// For each element of the 4 copies' output. Weights in fp32: forward the product is written, 4, added to the output, 2 + 4 + 4,
// joined, 4 + 4, and cast, 4 + 2. Backward it is cast, 2 + 4, and the output's part back, 4 + 2, and joined, 2 + 2; products for
// the gradients of bias and weight are written, 4 + 4 each, and summed, 4 each. In 16 bits no casts and half of the rest.
TEST(MoeBlock, BiasesOfExpertsThatNoGemmAddsAreTraffic) {
  const auto model = load_model("gpt-oss-120b");
  const double outputs = 2048 * 4 * 2880.0;
  const Setting wide(model, "dp=8 ep=8 dispatch=one-sided", 2048), narrow(model, "dp=8 ep=8", 2048);
  const auto in_fp32 = body(model, "moe", wide.context), in_16_bits = body(model, "moe", narrow.context);
  EXPECT_DOUBLE_EQ(bytes_of(in_fp32.forward, "experts_bias"), (4 + 10 + 8 + 6) * outputs);
  EXPECT_DOUBLE_EQ(bytes_of(in_fp32.backward, "experts_bias_backward"), (6 + 6 + 4 + 2 * 12) * outputs);
  EXPECT_DOUBLE_EQ(bytes_of(in_16_bits.forward, "experts_bias"), (2 + 6 + 4) * outputs);
  EXPECT_DOUBLE_EQ(bytes_of(in_16_bits.backward, "experts_bias_backward"), (4 + 2 * 6) * outputs);
  EXPECT_EQ(find(in_fp32.forward, "experts_bias_inner"), nullptr);
  const Setting without(mixtral(), "dp=8 ep=8 dispatch=one-sided", 2048);
  EXPECT_EQ(find(body(mixtral(), "moe", without.context).forward, "experts_bias"), nullptr);
}

// AutoModel adds the inner layer's biases apart too: sum 2 + 2 and joined 2 + 2, backward joined 2 + 2 and summed 2.
TEST(MoeBlock, BiasesOfTheInnerLayerAreTrafficWhereTheFrameworkAddsThem) {
  const auto model = load_model("gpt-oss-120b");
  Setting setting(model, "dp=8 ep=8 dispatch=one-sided", 2048);
  setting.context.expert_biases = load_framework("fsdp", "hopper").expert_biases;
  const auto one = body(model, "moe", setting.context);
  const double inner = 2048 * 4 * 2 * 2880.0;
  EXPECT_DOUBLE_EQ(bytes_of(one.forward, "experts_bias_inner"), 8 * inner);
  EXPECT_DOUBLE_EQ(bytes_of(one.backward, "experts_bias_inner_backward"), 6 * inner);
}

}  // namespace
}  // namespace core

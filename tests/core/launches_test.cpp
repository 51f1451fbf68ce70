// Launches that the host makes for a layer: what each kernel of ours stands for in a framework, counted by hand from its code.
#include "core/graph/launches.h"

#include <gtest/gtest.h>

#include "core/graph/step_work.h"
#include "core/model/model.h"
#include "tests/core/plans.h"

namespace core {
namespace {

Body layer_of(const std::string& framework, const std::string& plan_text, AttentionKernel attention) {
  auto model = load_model("gpt2-xl");
  model.hidden_dropout = model.attention_dropout = 0.1;
  const auto plan = plans::plan(plan_text);
  const auto recipe = load_recipe("fp16");
  const auto context = body_context(plan, recipe, load_framework(framework), model, 1024, attention);
  return layer_body(bodies_of(model, context).kinds.front(), plan.recompute, plan);
}

std::int64_t count(const Body& body, Part part, const std::string& framework) {
  return launches_of(load_framework(framework).launches, ops_of(body, part), CudaGraphs::none);
}

// A GPT layer of Megatron-LM 2.6 (megatron/model/transformer.py). Forward: 2 norms, 4 GEMMs, in attention the bias of queries, keys
// and values, scores, softmax, dropout, values and a copy, GELU, and 2 sums with bias and dropout. Backward: 4 input gradients; 4
// weight gradients with that of the bias, and both added to what is there; 2 norms with two passes for weight and bias, and both
// added; in attention a copy, two GEMMs each for values and scores, dropout, softmax, two scalings and a join; GELU; 2 dropouts
// and 2 sums.
constexpr std::int64_t forward_2021 = 2 + 4 + 6 + 1 + 2;
constexpr std::int64_t backward_2021 = 4 + 4 * 4 + 2 * (1 + 2 + 2) + (1 + 4 + 1 + 1 + 2 + 1) + 1 + 2 + 2;

TEST(Launches, OfALayerOfMegatronIn2021) {
  for (const std::string framework : {"megatron-2021", "megatron-deepspeed"}) {
    const auto plain = layer_of(framework, "tp=1 dp=1 mb=1 gbs=1", AttentionKernel::unfused);
    EXPECT_EQ(count(plain, Part::forward, framework), forward_2021);
    EXPECT_EQ(count(plain, Part::backward, framework), backward_2021);
  }
}

// A repeated forward is launched again, and 8 times a random state is read or set.
TEST(Launches, OfRecomputeAreThoseOfTheForwardAndItsBookkeeping) {
  const auto full = layer_of("megatron-2021", "tp=1 dp=1 mb=1 gbs=1 recompute=full", AttentionKernel::unfused);
  EXPECT_EQ(count(full, Part::backward, "megatron-2021"), forward_2021 + 8 + backward_2021);
}

// Tensor parallelism adds two all-reduces to each direction.
TEST(Launches, CollectivesAreLaunchedToo) {
  const auto body = layer_of("megatron-2021", "tp=2 dp=1 mb=1 gbs=1", AttentionKernel::unfused);
  EXPECT_EQ(count(body, Part::forward, "megatron-2021"), forward_2021 + 2);
  EXPECT_EQ(count(body, Part::backward, "megatron-2021"), backward_2021 + 2);
}

// The parts of a split backward share its launches out.
TEST(Launches, PartsOfABackwardHaveItsLaunches) {
  for (const std::string framework : {"megatron", "megatron-2021", "fsdp", "deepspeed"}) {
    const auto body = layer_of(framework, "tp=2 dp=1 mb=1 gbs=1 recompute=full", AttentionKernel::flash2);
    EXPECT_EQ(count(body, Part::input_gradient, framework) + count(body, Part::weight_gradient, framework),
              count(body, Part::backward, framework))
        << framework;
  }
}

double bytes(const std::vector<BodyOp>& ops, std::string_view end) {
  double sum = 0.0;
  for (const auto& op : ops) sum += std::string_view(op.spec.name).ends_with(end) ? op.spec.bytes.value : 0.0;
  return sum;
}

// Of 12 h^2 weights: a GEMM that adds reads and writes the fp16 sum, 4 bytes; one that does not writes 2, and another kernel reads
// them, reads the sum and writes it, 6.
TEST(GradientSums, ApartTakeTwoMorePassesOverTheWeights) {
  const double weights = 12.0 * 1600 * 1600;
  const std::string plan = "tp=1 dp=1 mb=1 gbs=1";
  const auto fused = layer_of("megatron", plan, AttentionKernel::unfused);
  const auto apart = layer_of("megatron-2021", plan, AttentionKernel::unfused);
  const double sum = load_recipe("fp16").gradient_bytes;
  EXPECT_EQ(bytes(fused.backward, "_gradient_sum"), 0.0);
  EXPECT_EQ(bytes(apart.backward, "_gradient_sum"), (2.0 + 2.0 * sum) * weights);
  EXPECT_EQ(bytes(fused.backward, "_weight_gradient") - bytes(apart.backward, "_weight_gradient"), (2.0 * sum - 2.0) * weights);
}

// BF16_Optimizer keeps bf16 gradients beside its fp32 sum: 2 bytes a parameter, none where the sum is in the weights' format.
TEST(GradientSums, KeptGradientsTakeTheWeightsBytes) {
  auto framework = load_framework("megatron-deepspeed");
  RankParameters p;
  p.all.dense = p.gemm.dense = 1e9;
  const auto buffers = [&](const std::string& recipe) {
    return resident_memory(p, plans::plan("tp=1 dp=1 mb=1 gbs=1"), load_recipe(recipe), framework)[index_of(MemoryTerm::buffers)];
  };
  const auto with = buffers("bf16");
  ASSERT_EQ(load_recipe("bf16").gradient_bytes, 4.0);
  framework.keeps_gradients = false;
  EXPECT_NEAR(static_cast<double>(with - buffers("bf16")), 2e9, 1024);
  const auto without = buffers("bf16-grad16");
  framework.keeps_gradients = true;
  EXPECT_EQ(buffers("bf16-grad16"), without);
}

}  // namespace
}  // namespace core

// Launches that the host makes for a layer: what each kernel of ours stands for in a framework, counted by hand from its code.
#include "core/graph/launches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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
  const auto context = body_context(plan, recipe, load_framework(framework, "hopper"), model, 1024, attention);
  return layer_body(bodies_of(model, context).kinds.front(), plan.recompute, plan);
}

std::int64_t count(const Body& body, Part part, const std::string& framework) {
  return launches_of(load_framework(framework, "hopper").launches, ops_of(body, part), CudaGraphs::none);
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

Body expert_layer(const std::string& plan_text) {
  const auto model = load_model("mixtral-8x7b");
  const auto plan = plans::plan(plan_text);
  const auto recipe = load_recipe("bf16");
  const auto context = body_context(plan, recipe, load_framework("megatron", "hopper"), model, 4096, AttentionKernel::flash2);
  return layer_body(bodies_of(model, context).kinds.front(), plan.recompute, plan);
}

// A router stands for its GEMM, top k, loss and counts; each of 8 experts on the rank adds to both of its grouped GEMMs.
TEST(Launches, RoutersAndExpertsHaveTheirOwn) {
  const auto launches = load_framework("megatron", "hopper").launches;
  for (const auto& op : expert_layer("tp=1 dp=1 mb=1 gbs=1").forward) {
    const auto count = launches_of(launches, op, CudaGraphs::none);
    if (op.spec.name == "router") {
      EXPECT_EQ(count, launches.gemm + launches.router.forward);
    } else if (op.spec.name == "experts_up") {
      EXPECT_EQ(count, launches.gemm + std::llround(8 * launches.expert));
    }
  }
}

// Biases of experts that are added apart: each of 16 experts on the rank has its own.
TEST(Launches, BiasesOfExpertsAreAddedOneAfterAnother) {
  const auto model = load_model("gpt-oss-120b");
  const auto plan = plans::plan("tp=1 dp=8 ep=8 mb=1 gbs=8");
  const auto recipe = load_recipe("bf16");
  const auto framework = load_framework("megatron", "hopper");
  const auto& launches = framework.launches;
  const auto context = body_context(plan, recipe, framework, model, 4096, AttentionKernel::flash2);
  const auto body = bodies_of(model, context).kinds.front();
  std::int64_t seen = 0;
  for (const auto& op : ops_of(body, Part::backward)) {
    if (op->spec.name != "experts_bias_backward") continue;
    EXPECT_EQ(launches_of(launches, *op, CudaGraphs::attention_router),
              launches.other.backward + std::llround(16 * launches.expert_bias_backward));
    ++seen;
  }
  EXPECT_EQ(seen, 1);
}

// Graphs of attention hold what comes before the router, those of the router it alone; the experts are launched anyhow.
TEST(Launches, GraphsOfPartsOfALayerLeaveTheRest) {
  const auto launches = load_framework("megatron", "hopper").launches;
  const auto body = expert_layer("tp=1 dp=1 mb=1 gbs=1");
  const auto counted = [&](CudaGraphs graphs) { return launches_of(launches, ops_of(body, Part::forward), graphs); };
  std::int64_t attention = 0, router = 0;
  for (const auto& op : body.forward) {
    const std::string_view name = op.spec.name;
    const auto count = launches_of(launches, op, CudaGraphs::none);
    if (name == "router") router += count;
    for (const auto* of_attention : {"norm", "qkv", "rope", "core_attention", "attention_out", "residual", "top_k"}) {
      if (name == of_attention) attention += count;
    }
  }
  const auto all = counted(CudaGraphs::none);
  EXPECT_EQ(counted(CudaGraphs::layers), all);
  EXPECT_EQ(counted(CudaGraphs::router), all - router);
  EXPECT_EQ(counted(CudaGraphs::attention), all - attention);
  EXPECT_EQ(counted(CudaGraphs::attention_router), all - attention - router);
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

// Without re-entry a checkpoint's second forward ends before the last GEMM, whose output no backward of the layer needs.
TEST(Recompute, StopsBeforeTheLastGemmWhereTheFrameworkDoes) {
  const std::string plan = "tp=1 dp=1 mb=1 gbs=1 recompute=full";
  const auto repeats = [&](const std::string& framework, std::string_view name) {
    const auto body = layer_of(framework, plan, AttentionKernel::flash2);
    return std::count_if(body.backward.begin(), body.backward.end(),
                         [&](const BodyOp& op) { return op.recompute && op.spec.name == name; });
  };
  for (const std::string framework : {"megatron", "deepspeed"}) EXPECT_EQ(repeats(framework, "mlp_down"), 1) << framework;
  for (const std::string framework : {"fsdp", "fsdp-eager", "llm-foundry"}) {
    EXPECT_EQ(repeats(framework, "mlp_down"), 0) << framework;
    EXPECT_EQ(repeats(framework, "mlp_up"), 1) << framework;
  }
}

// Of a unit's parameters: FSDP2 copies what it gathered (2 + 2 bytes, forward and backward) and casts gradients from 2 to 4 bytes
// on the way to the buffer that is reduced; llm-foundry's FSDP joins (2 + 2), casts (2 + 4)
// and divides (4 + 4) gradients. Nothing where units are whole.
TEST(UnitCopies, MoveWhatShardedUnitsHold) {
  const auto parameters = layer_of("fsdp", "tp=1 dp=8 zero=3 mb=1 gbs=8", AttentionKernel::flash2).all_parameters();
  const auto moved = [&](const std::string& framework, const std::string& recipe, int zero, bool backward) {
    auto model = load_model("gpt2-xl");
    const auto plan = plans::plan("tp=1 dp=8 mb=1 gbs=8 zero=" + std::to_string(zero));
    const auto read = load_recipe(recipe);
    const auto body = bodies_of(model, body_context(plan, read, load_framework(framework, "hopper"), model, 1024, AttentionKernel::flash2)).kinds.front();
    const auto& ops = backward ? body.backward : body.forward;
    return (bytes(ops, "unit_gather_copies") + bytes(ops, "gradient_copies")) / parameters;
  };
  EXPECT_DOUBLE_EQ(moved("fsdp", "bf16", 3, false), 4.0);
  EXPECT_DOUBLE_EQ(moved("fsdp", "bf16", 3, true), 4.0 + 6.0);
  EXPECT_DOUBLE_EQ(moved("llm-foundry", "bf16", 3, false), 0.0);
  EXPECT_DOUBLE_EQ(moved("llm-foundry", "bf16", 3, true), 4.0 + 6.0 + 8.0);
  EXPECT_DOUBLE_EQ(moved("llm-foundry", "bf16", 1, true), 0.0);
  EXPECT_DOUBLE_EQ(moved("megatron", "bf16", 3, true), 0.0);
}

// BF16_Optimizer keeps bf16 gradients beside its fp32 sum: 2 bytes a parameter, none where the sum is in the weights' format.
TEST(GradientSums, KeptGradientsTakeTheWeightsBytes) {
  auto framework = load_framework("megatron-deepspeed", "hopper");
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

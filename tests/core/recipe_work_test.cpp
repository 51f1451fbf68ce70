// What a recipe makes of the work of a layer: operands, the kernels that make them, copies, the optimizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/body_writer.h"
#include "core/graph/lower.h"
#include "tests/core/plans.h"

namespace core {
namespace {

Body layer(const std::string& recipe_name, const std::string& plan, bool high_precision = false) {
  const auto model = load_model("llama-2-7b");
  const auto given = load_recipe(recipe_name);
  const auto recipe = high_precision ? given.kept_high() : given;
  const auto framework = load_framework("megatron", "hopper");
  auto context = body_context(plans::plan(plan), recipe, framework, model, 4096, AttentionKernel::flash2);
  context.high_precision = high_precision;
  return bodies_of(model, context).kinds.front();
}

const BodyOp* find(const std::vector<BodyOp>& ops, const std::string& name) {
  const auto found = std::find_if(ops.begin(), ops.end(), [&](const BodyOp& op) { return op.spec.name == name; });
  return found == ops.end() ? nullptr : &*found;
}

double bytes(const std::vector<BodyOp>& ops, const std::string& name) {
  const auto* op = find(ops, name);
  return op == nullptr ? 0.0 : op->spec.bytes.value;
}

std::vector<std::string> names_from(const std::vector<BodyOp>& ops, const std::string& prefix) {
  std::vector<std::string> out;
  for (const auto& op : ops) {
    if (op.spec.name.str().starts_with(prefix)) out.push_back(op.spec.name.str());
  }
  return out;
}

constexpr double tokens = 4096, h = 4096, F = 11008;

// Delayed scaling: one fused cast and transpose of each input and gradient, four bytes an element.
TEST(RecipeWork, OfFp8) {
  const auto body = layer("fp8", "");
  EXPECT_EQ(bytes(body.forward, "qkv_cast"), 4 * tokens * h);
  EXPECT_EQ(bytes(body.forward, "mlp_down_cast"), 4 * tokens * F);
  EXPECT_EQ(bytes(body.backward, "mlp_up_gradient_cast"), 4 * tokens * 2 * F);
  EXPECT_EQ(find(body.forward, "mlp_up_weight_cast"), nullptr);
  // One byte for each operand, two for the result; the weight's gradient is added in fp32.
  EXPECT_EQ(bytes(body.forward, "mlp_down"), tokens * F + F * h + 2 * tokens * h);
  EXPECT_EQ(bytes(body.backward, "mlp_down_weight_gradient"), tokens * h + tokens * F + 8 * F * h);
  EXPECT_EQ(find(body.forward, "mlp_down")->spec.format, Format::fp8);
}

// Gathered weights are cast where they are gathered: before the forward GEMM and before the input gradient's.
TEST(RecipeWork, ShardedWeightsAreCastInEachMicroBatch) {
  const auto body = layer("fp8", "dp=8 zero=3 gbs=8");
  EXPECT_EQ(bytes(body.forward, "mlp_down_weight_cast"), 4 * F * h);
  EXPECT_EQ(bytes(body.backward, "mlp_down_weight_cast"), 4 * F * h);
}

// Scale factors travel with the operands.
TEST(RecipeWork, CountsScaleFactors) {
  const auto body = layer("fp8-block", "");
  const double tile = 1 + 4.0 / 128, block = 1 + 4.0 / (128 * 128);
  EXPECT_DOUBLE_EQ(bytes(body.forward, "mlp_down"), tile * tokens * F + block * F * h + 2 * tokens * h);
  EXPECT_DOUBLE_EQ(bytes(body.backward, "mlp_down_requantise"), 2 * tile * tokens * F);
  // Only the weight's gradient needs what is quantised again: a split backward leaves it to W.
  EXPECT_TRUE(find(body.backward, "mlp_down_requantise")->weight_gradient);
  EXPECT_FALSE(find(body.backward, "mlp_down_gradient_cast")->weight_gradient);
}

TEST(RecipeWork, OfNvfp4TransformsInputsAndGradients) {
  const auto body = layer("nvfp4", "");
  EXPECT_EQ(names_from(body.forward, "mlp_down"),
            (std::vector<std::string>{"mlp_down_amax", "mlp_down_cast", "mlp_down"}));
  EXPECT_EQ(names_from(body.backward, "mlp_down"),
            (std::vector<std::string>{"mlp_down_gradient_amax", "mlp_down_gradient_cast", "mlp_down_input_gradient",
                                      "mlp_down_weight_gradient"}));
  EXPECT_DOUBLE_EQ(bytes(body.forward, "mlp_down_cast"), (2 + 2 * (0.5 + 1.0 / 16)) * tokens * F);
  EXPECT_EQ(find(body.forward, "mlp_down")->spec.format, Format::fp4);
}

// Queries, keys and values are cast before attention, its output's gradient before the backward; two bytes read and two scaled
// copies written.
TEST(RecipeWork, OfAttentionInMxfp8) {
  const auto wide = layer("mxfp8-wide", ""), plain = layer("mxfp8", "");
  const double pass = 2 + 2 * (1 + 1.0 / 32);
  EXPECT_EQ(find(wide.forward, "core_attention")->spec.format, Format::fp8);
  EXPECT_EQ(find(wide.backward, "core_attention_backward")->spec.format, Format::fp8);
  EXPECT_DOUBLE_EQ(bytes(wide.forward, "core_attention_cast"), pass * tokens * 3 * h);
  EXPECT_DOUBLE_EQ(bytes(wide.backward, "core_attention_gradient_cast"), pass * tokens * h);
  EXPECT_EQ(find(plain.forward, "core_attention")->spec.format, Format::bf16);
  EXPECT_EQ(names_from(plain.forward, "core_attention"), (std::vector<std::string>{"core_attention"}));
  EXPECT_EQ(wide.forward.size(), plain.forward.size() + 1);
  EXPECT_EQ(wide.backward.size(), plain.backward.size() + 1);
}

// Layers kept high are those of bf16, in work, in what they save, and in weights that need no copy.
TEST(RecipeWork, LayersKeptHighAreThoseOfBf16) {
  const auto high = layer("nvfp4", "", true), bf16 = layer("bf16", "");
  ASSERT_EQ(high.forward.size(), bf16.forward.size());
  ASSERT_EQ(high.backward.size(), bf16.backward.size());
  for (std::size_t i = 0; i < high.forward.size(); ++i) EXPECT_EQ(high.forward[i].spec, bf16.forward[i].spec);
  for (std::size_t i = 0; i < high.backward.size(); ++i) EXPECT_EQ(high.backward[i].spec, bf16.backward[i].spec);
  ASSERT_EQ(high.saved.size(), bf16.saved.size());
  for (std::size_t i = 0; i < high.saved.size(); ++i) EXPECT_EQ(high.saved[i].bytes, bf16.saved[i].bytes);
  EXPECT_EQ(high.gemm_parameters + high.expert_gemm_parameters, 0.0);
  EXPECT_GT(bf16.gemm_parameters, 0.0);
}

// The first layer of the model and its last four are kept high, whichever stage has them.
TEST(RecipeWork, KeepsTheFirstAndTheLastLayersHigh) {
  const auto model = load_model("llama-2-7b");
  const auto work = plans::step(model, plans::plan("pp=4 gbs=4"), 4096, AttentionKernel::flash2, "nvfp4");
  std::vector<bool> high;
  for (const auto& stage : work.stages) {
    for (const auto index : stage.bodies) {
      const auto* gemm = find(work.bodies[index].forward, "mlp_up");
      if (gemm != nullptr) high.push_back(gemm->spec.format == Format::bf16);
    }
  }
  ASSERT_EQ(high.size(), 32u);
  for (std::size_t i = 0; i < high.size(); ++i) EXPECT_EQ(high[i], i < 1 || i >= 28) << i;
}

// A collective that runs beside a GEMM is followed by the GEMM, not by the cast of its operand.
TEST(RecipeWork, CastsComeBeforeTheCollectiveThatOverlaps) {
  for (const auto* recipe : {"bf16", "fp8", "fp8-block", "nvfp4"}) {
    const auto body = layer(recipe, "tp=4 sp");
    std::int64_t overlapping = 0;
    for (std::size_t i = 0; i < body.backward.size(); ++i) {
      if (!body.backward[i].overlaps_next) continue;
      EXPECT_EQ(body.backward.at(i + 1).spec.kind, OpKind::gemm) << recipe << " " << body.backward[i].spec.name.str();
      ++overlapping;
    }
    EXPECT_EQ(overlapping, 4) << recipe;
  }
}

// Ternary weights are made from the high-precision ones in each forward pass, and multiplied in bf16.
TEST(RecipeWork, OfBitnet) {
  const auto body = layer("bitnet", "");
  EXPECT_EQ(bytes(body.forward, "mlp_down_weight_mean"), 2 * F * h);
  EXPECT_EQ(bytes(body.forward, "mlp_down_weight_quant"), 4 * F * h);
  EXPECT_EQ(find(body.forward, "mlp_down")->spec.format, Format::bf16);
}

// A grouped GEMM's experts are cast as often as they are many.
TEST(RecipeWork, ExpertsAreCastTogether) {
  const auto recipe = load_recipe("fp8-block");
  BodyContext context;
  context.recipe = &recipe;
  Body body;
  BodyWriter::Linear up{"expert_up", 256, 2048, 1536};
  up.experts = 16;
  BodyWriter(body, context).linear_forward(up);
  EXPECT_DOUBLE_EQ(bytes(body.forward, "expert_up_cast"), 16 * 256.0 * 2048 * (2 + 1 + 4.0 / 128));
  // The router stays in bf16 and is not cast.
  Body router;
  BodyWriter::Linear gate{"router", 256, 2048, 128};
  gate.kind = LinearKind::router;
  BodyWriter(router, context).linear_forward(gate);
  ASSERT_EQ(router.forward.size(), 1u);
  EXPECT_EQ(router.forward.front().spec.format, Format::bf16);
}

// --- states --------------------------------------------------------------------------------------

double states(const std::string& recipe, double gemm) {
  RankParameters p;
  p.all.dense = 1e9, p.gemm.dense = gemm;
  const auto terms = resident_memory(p, plans::plan(""), load_recipe(recipe), load_framework("megatron", "hopper"));
  double sum = 0.0;
  for (const auto term : {MemoryTerm::weights, MemoryTerm::gradients, MemoryTerm::optimizer}) {
    sum += static_cast<double>(terms[index_of(term)]);
  }
  return sum;
}

// Field case F30: states do not shrink with fewer bits in GEMMs; copies come on top.
TEST(RecipeStates, AreThoseOfBf16AndTheCopies) {
  EXPECT_NEAR(states("bf16", 0.9e9), 18e9, 2048);
  EXPECT_NEAR(states("fp8", 0.9e9), 18e9 + 2 * 0.9e9, 2048);
  EXPECT_NEAR(states("fp8-current", 0.9e9), 18e9 + 2 * 0.9e9, 2048);
  EXPECT_NEAR(states("mxfp8", 0.9e9), 18e9 + 2 * (1 + 1.0 / 32) * 0.9e9, 2048);
  EXPECT_NEAR(states("nvfp4", 0.9e9), 18e9 + 2 * (0.5 + 1.0 / 16) * 0.9e9, 2048);
  EXPECT_NEAR(states("fp8-block", 0.9e9), 14e9 + 2 * (1 + 4.0 / 16384) * 0.9e9, 2048);
}

// Muon keeps no second moment of the matrices: 4 bytes less for each of their elements.
TEST(RecipeStates, OfMuon) { EXPECT_NEAR(states("bf16-muon", 0.9e9), 18e9 - 4 * 0.9e9, 2048); }

// --- the optimizer's operation -------------------------------------------------------------------

RankParameters rank_of(double parameters, double matrices, double newton_schulz) {
  RankParameters p;
  p.all.dense = parameters, p.gemm.dense = matrices, p.newton_schulz = newton_schulz;
  return p;
}

// Adam with the distributed optimizer: 34 bytes for each element of its share (the gradient twice, main weights and both
// moments in and out, the weight), and the whole gradient cleared.
TEST(OptimizerSpec, OfAdam) {
  const auto spec = optimizer_spec(rank_of(8e9, 7e9, 1e15), plans::plan("dp=8 zero=1 gbs=8"), load_recipe("bf16"));
  EXPECT_EQ(spec.name, "adam");
  EXPECT_DOUBLE_EQ(spec.bytes.value, 34 * 1e9 + 4 * 8e9);
  EXPECT_EQ(spec.m, 1'000'000'000);
  EXPECT_EQ(spec.flops.value, 0.0);
}

// Casts of weights once a step, of all that the rank computes with; not where they are gathered for each micro-batch.
TEST(OptimizerSpec, CastsWeights) {
  const auto whole = rank_of(8e9, 7e9, 0.0);
  const auto cast = [&](const std::string& plan) {
    return optimizer_spec(whole, plans::plan(plan), load_recipe("fp8")).bytes.value -
           optimizer_spec(whole, plans::plan(plan), load_recipe("bf16")).bytes.value;
  };
  EXPECT_DOUBLE_EQ(cast("dp=8 zero=1 gbs=8"), 4 * 7e9);
  EXPECT_DOUBLE_EQ(cast("dp=8 zero=3 gbs=8"), 0.0);
}

// Muon: five Newton-Schulz steps over each matrix of each layer, on tensor-parallel parts each by itself.
TEST(OptimizerSpec, OfMuon) {
  const auto model = load_model("llama-2-7b");
  const auto flops = [&](const std::string& text) {
    const auto plan = plans::plan(text);
    const auto work = plans::step(model, plan, 4096, AttentionKernel::flash2, "bf16-muon");
    return optimizer_spec(rank_parameters(work, 0), plan, work.recipe).flops.value;
  };
  const auto matrices = [](double t) {
    return 32 * (4 * newton_schulz_flops(h, h / t) + 3 * newton_schulz_flops(h, F / t));
  };
  EXPECT_DOUBLE_EQ(flops(""), 5 * matrices(1));
  EXPECT_DOUBLE_EQ(flops("tp=4"), 5 * matrices(4));
  // Eight parts: each rank does its share, and of the matrices that are cut all, as do the others that have parts of them:
  // 7 cuts fall evenly among n elements, 7 e / n into a matrix of e.
  const auto n = static_cast<double>(count_parameters(model).total);
  const double twice = 32 * (4 * newton_schulz_flops(h, h) * h * h + 3 * newton_schulz_flops(h, F) * h * F) * 7 / n;
  EXPECT_DOUBLE_EQ(flops("dp=8 zero=1 gbs=8"), 5 * (matrices(1) + twice) / 8);
}

// Matrices that are given to ranks whole are done once.
TEST(OptimizerSpec, OfMuonOnWholeMatricesIsSharedOutEvenly) {
  auto recipe = load_recipe("bf16-muon");
  recipe.matrix_gather_bytes = 0.0;
  auto whole = rank_of(8e9, 7e9, 1e15);
  whole.newton_schulz_elements.dense = 1e15 * 4e7;
  EXPECT_DOUBLE_EQ(optimizer_spec(whole, plans::plan("dp=8 zero=1 gbs=8"), recipe).flops.value, 5 * 1e15 / 8);
}

// arXiv 2502.16982, section 2.3: AdamW with sharded states moves 4 bytes of each gradient and 4 of each parameter, distributed
// Muon 2 more of what it gathers: in (1, 1.25], the upper bound where a rank gathers all. One matrix is all of it; of k equal
// ones the cuts are in the k-th part; between whole matrices there is nothing.
TEST(OptimizerSpec, MuonMovesUpToAQuarterMoreThanAdam) {
  auto recipe = load_recipe("bf16-muon");
  recipe.gradient_reduce_bytes = 4.0, recipe.parameter_gather_bytes = 4.0, recipe.matrix_gather_bytes = 2.0;
  const StateTraffic traffic(plans::plan("dp=64 zero=1 gbs=64"), recipe);
  const auto bytes = [](const StateOps& ops) {
    double sum = 0.0;
    for (const auto& op : ops) {
      EXPECT_EQ(op.group, (GroupShape{1, 64}));
      sum += op.bytes;
    }
    return sum;
  };
  const double n = 8e9;
  const auto ratio = [&](double matrices, double part_of_all) {
    const double e = part_of_all * n / matrices;
    // Without overlap of gradients' buckets: one reduce-scatter of 4 n and one all-gather of 4 n.
    const double adam = bytes(traffic.reduce_last({n, 0.0})) + bytes(traffic.updated_gather({n, 0.0}));
    return (adam + bytes(traffic.matrix_gather({n, 0.0}, {matrices * e * e, 0.0}))) / adam;
  };
  EXPECT_DOUBLE_EQ(ratio(1, 1.0), 1.25);
  EXPECT_DOUBLE_EQ(ratio(10, 1.0), 1.025);
  EXPECT_DOUBLE_EQ(ratio(1, 0.5), 1.0625);
  EXPECT_EQ(traffic.matrix_gather({n, 0.0}, {0.0, 0.0}).size(), 0u);
  EXPECT_EQ(StateTraffic(plans::plan("dp=64 gbs=64"), recipe).matrix_gather({n, 0.0}, {n * n, 0.0}).size(), 0u);
}

// Layers that run several times have one set of weights: one orthogonalisation.
TEST(OptimizerSpec, OfMuonTakesWeightsThatRunAgainOnce) {
  auto model = load_model("ouro-2.6b");
  ASSERT_GT(model.loops, 1);
  const auto newton_schulz = [&] {
    const auto work = plans::step(model, plans::plan(""), 1024, AttentionKernel::flash2, "bf16-muon");
    return rank_parameters(work, 0).newton_schulz;
  };
  const double looped = newton_schulz();
  model.loops = 1;
  EXPECT_DOUBLE_EQ(looped, newton_schulz());
}

}  // namespace
}  // namespace core

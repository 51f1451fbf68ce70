// Small situations that users of planners met, with what a good tool answers (their numbers are
// those of our log of field cases). Measured figures are one run on one system.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/lower.h"
#include "simulator/request.h"
#include "simulator/step.h"

namespace {

using simulator::Bench;
using simulator::Fits;
using simulator::Setting;
using simulator::StepReport;

struct Question {
  std::string model, gpu;
  std::int64_t gpus = 1, seq = 0;
  std::string recipe = "", attention = "", framework = "megatron";
};

Setting setting_of(const Question& q) {
  simulator::Request request;
  request.model = q.model;
  request.gpu = q.gpu;
  request.gpus = q.gpus;
  request.seq = q.seq;
  request.recipe = q.recipe;
  request.attention = q.attention;
  request.framework = q.framework;
  return simulator::make_setting(request);
}

StepReport report(const Setting& setting,
                  const std::string& text,
                  core::Grain grain = core::Grain::op) {
  auto plan =
      core::complete_plan(core::parse_plan(text, "plan"), setting.model, setting.cluster.gpus, 1);
  plan.recipe = setting.recipe.name;
  const auto reason = core::why_not(setting.model, plan, setting.cluster.gpus, setting.seq);
  EXPECT_EQ(reason, std::nullopt);
  const Bench bench(setting);
  return simulator::simulate_step(
             setting, bench, plan, grain, core::Fold::yes, simulator::Detail::answer)
      .report;
}

bool has(const std::vector<std::string>& lines, std::string_view part) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& l) {
    return l.find(part) != std::string::npos;
  });
}

// F6: gpt2-large, 4 x 1024 tokens, fp16, unfused attention, no recompute, a V100 of 32 GB: ran out
// of memory. "Does not fit" or within 5 % of the limit.
TEST(FieldCases, F6Gpt2LargeDoesNotFitAV100) {
  const auto r =
      report(setting_of({"gpt2-large", "v100-sxm-32", 1, 1024, "fp16", "unfused"}), "mb=4 gbs=4");
  EXPECT_GE(r.peak_memory_GiB, 0.95 * r.memory_limit_GiB);
  fmt::print("F6: {:.1f} of {:.1f} GiB\n", r.peak_memory_GiB, r.memory_limit_GiB);
}

// F7: llama-2-7b from launch flags. States 7.5 x 6.738e9 bytes = 47.1 GiB.
TEST(FieldCases, F7SevenBillionOnEightGpus) {
  const auto setting = setting_of({"llama-2-7b", "h100-sxm", 8, 4096});
  const auto without = report(setting, "dp=8 zero=1 mb=2 gbs=128 sp");
  EXPECT_NEAR(without.stages[0].states_GiB, 47.1, 0.005 * 47.1);
  EXPECT_GT(without.peak_memory_GiB * 1.073741824, 80.0);  // GB
  EXPECT_EQ(without.fits, Fits::no);
  EXPECT_TRUE(has(without.notes, "sp does nothing at tp=1"));
  EXPECT_EQ(report(setting, "dp=8 zero=1 mb=2 gbs=128 recompute=full").fits, Fits::yes);
}

// F9: 8 layers as 1, 2, 2, 3 on 4 stages: the need is that of the worst stage.
TEST(FieldCases, F9TheNeedIsThatOfTheWorstStage) {
  auto setting = setting_of({"llama-3.2-1b", "h100-sxm", 4, 2048});
  setting.model.layer_kind.assign(8, 0);
  const auto r = report(setting, "pp=4 gbs=8 layers=1/2/2/3");
  double most = 0.0, sum = 0.0;
  for (const auto& stage : r.stages) {
    most = std::max(most, stage.peak_GiB);
    sum += stage.peak_GiB;
    double terms = 0.0;
    for (const auto term : stage.terms_GiB) terms += term;
    EXPECT_DOUBLE_EQ(terms, stage.peak_GiB);
  }
  EXPECT_EQ(r.peak_memory_GiB, most);
  EXPECT_EQ(r.fullest_stage, 3);
  EXPECT_GT(most, 1.1 * sum / 4);
  for (std::size_t s = 0; s < 4; ++s)
    EXPECT_EQ(r.stages[s].layers, std::vector<std::int64_t>({1, 2, 2, 3})[s]);
}

// F47: the peak is the dense one. 9,600 tokens/s at 0.05 TFLOP each are 48.5 % of an H100; 420
// TFLOP/s are 42.5 % of an H200. A prediction's MFU is by the same rule, and never over 100 %.
TEST(FieldCases, F47TheMfuIsOfTheDensePeak) {
  const auto peak = [](const std::string& gpu) { return core::load_gpu(gpu).peak("bf16")->value; };
  const double h100 = 9600 * 0.05e12 / peak("h100-sxm"), h200 = 420e12 / peak("h200-sxm");
  EXPECT_GE(h100, 0.46);
  EXPECT_LE(h100, 0.49);
  EXPECT_NEAR(h200, 0.425, 0.001);

  const auto setting = setting_of({"llama-2-7b", "h100-sxm", 8, 4096});
  const auto r = report(setting, "dp=8 zero=1 mb=1 gbs=128");
  const double a_token = 3.0 * core::flops_per_token_forward(setting.model, 4096);
  EXPECT_NEAR(a_token / 1e12, 0.05, 0.005);
  EXPECT_NEAR(r.mfu, r.tokens_per_s_per_gpu * a_token / peak("h100-sxm"), 1e-12);
  EXPECT_NEAR(r.tflops_per_gpu * 1e12, r.mfu * peak("h100-sxm"), 1.0);
  EXPECT_NEAR(r.bound_s / r.step_time_s, r.mfu, 1e-12);
  for (const std::string plan :
       {"dp=8 zero=0 mb=1 gbs=8", "tp=8 gbs=8", "pp=8 gbs=64", "dp=8 zero=3 mb=4 gbs=512"}) {
    const auto other = report(setting, plan);
    EXPECT_GT(other.mfu, 0.0);
    EXPECT_LT(other.mfu, 1.0);
    EXPECT_LT(other.low_s, other.step_time_s);
    EXPECT_GT(other.high_s, other.step_time_s);
  }
}

// F51: a 10B dense model on one node of 8 A100 with NVSwitch, 32 micro-batches and more: PP8 is
// faster than TP8 (measured: by over 30 %).
TEST(FieldCases, F51PipelineBeatsTensorParallelInsideANode) {
  auto setting = setting_of({"llama-2-13b", "a100-sxm-80", 8, 2048});
  setting.model.layer_kind.assign(32, 0);  // 13.0e9 x 32 / 40: about 10.5e9
  EXPECT_NEAR(static_cast<double>(core::count_parameters(setting.model).total), 10.5e9, 0.3e9);
  for (const std::string batch : {"32", "64", "128"}) {
    const auto pipeline = report(setting, "pp=8 mb=1 gbs=" + batch),
               tensor = report(setting, "tp=8 sp mb=1 gbs=" + batch);
    EXPECT_LT(pipeline.step_time_s, tensor.step_time_s);
    fmt::print("F51: {} micro-batches, tp8 / pp8 {:.2f}\n",
               batch,
               tensor.step_time_s / pipeline.step_time_s);
  }
}

// F62: 12 layers, hidden 768, 8 heads, 8 x 2048 tokens, fp16, full or selective recompute on one
// V100S: measured 680 to 740 ms; a known simulator said 6,042. Bound FLOPs / peak about 160 ms with
// the recompute, 96 B s l h^2 (1 + s / 6h) + 6 B s h V over 125 TFLOP/s.
TEST(FieldCases, F62StaysNearThePeak) {
  auto setting = setting_of({"gpt2", "v100-sxm-32", 1, 1024, "fp16"});
  setting.seq = 2048;
  for (auto& block : setting.model.embedding) {
    if (block.kind == "embedding") block.shape.set("positions", 2048);
  }
  for (auto& block : setting.model.kinds[0].blocks) {
    if (block.kind == "attention")
      block.shape.set("heads", 8), block.shape.set("kv_heads", 8), block.shape.set("head_dim", 96);
  }
  const double l = 12, h = 768, s = 2048, B = 8, V = 50257;
  const double model_flops = 72 * B * s * l * h * h * (1 + s / (6 * h)) + 6 * B * s * h * V;
  EXPECT_NEAR((model_flops + 24 * B * s * l * h * h * (1 + s / (6 * h))) / 125e12, 0.160, 0.002);
  for (const std::string attention : {"unfused", "flash1"}) {
    setting.attention = core::attention_kernel_of(attention);
    for (const std::string recompute : {"selective", "full"}) {
      const auto r = report(setting, "mb=8 gbs=8 recompute=" + recompute);
      fmt::print("F62: {}, {}: {:.0f} ms, at peak {:.0f} ms\n",
                 attention,
                 recompute,
                 1e3 * r.step_time_s,
                 1e3 * r.bound_s);
      EXPECT_NEAR(r.bound_s, model_flops / 125e12, 1e-6);
      EXPECT_GT(r.step_time_s, r.bound_s);
      if (attention == "unfused") {
        EXPECT_GE(r.step_time_s, 0.350) << recompute;
        EXPECT_LE(r.step_time_s, 1.100) << recompute;
      }
    }
  }
}

// F63: TP8 on 32 and on 64 GPUs: each group has 8 GPUs in one node, there are 4 and then 8 of them,
// and their all-reduces take the same time.
TEST(FieldCases, F63SaysWhatACollectiveSpans) {
  std::vector<core::SimTime> times;
  for (const std::int64_t gpus : {32, 64}) {
    const auto setting = setting_of({"llama-3.1-8b", "h100-sxm", gpus, 4096});
    const Bench bench(setting);
    const auto plan =
        core::parse_plan("tp=8 zero=1 dp=" + std::to_string(gpus / 8) + " gbs=64", "plan").plan;
    const auto step = simulator::simulate_step(
        setting, bench, plan, core::Grain::op, core::Fold::yes, simulator::Detail::answer);
    EXPECT_TRUE(
        has(step.report.groups, fmt::format("tp: {} groups of 8, each inside one node", gpus / 8)))
        << fmt::format("{}", fmt::join(step.report.groups, "; "));
    for (std::size_t i = 0; i < step.graph.specs.size(); ++i) {
      if (step.graph.specs[i].name == "tp_all_reduce") times.push_back(step.prices[i].duration);
    }
  }
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0], times[1]);
}

// F66: TP8 DP8 on 8 nodes of 8: the data-parallel group crosses nodes, though its size is 8. With
// TP1 DP8 on one node it is inside.
TEST(FieldCases, F66PlacementDecidesTheLink) {
  const core::Topology eight_nodes(core::make_cluster("h100-sxm", 64)),
      one_node(core::make_cluster("h100-sxm", 8));
  const auto across = eight_nodes.group(0, 8, 8), inside = one_node.group(0, 1, 8);
  EXPECT_FALSE(across.inside_nvlink);
  EXPECT_EQ(across.domains, 8);
  EXPECT_TRUE(inside.inside_nvlink);
  EXPECT_EQ(inside.domains, 1);
  const auto eight = report(setting_of({"llama-3.1-8b", "h100-sxm", 64, 4096}), "tp=8 dp=8 gbs=64");
  EXPECT_TRUE(has(eight.groups, "dp: 8 groups of 8, each across 8 nodes"))
      << fmt::format("{}", fmt::join(eight.groups, "; "));
  const auto one = report(setting_of({"llama-3.1-8b", "h100-sxm", 8, 4096}), "tp=1 dp=8 gbs=64");
  EXPECT_TRUE(has(one.groups, "inside one node")) << fmt::format("{}", fmt::join(one.groups, "; "));
}

// F44: equal stages, PP8, 32 micro-batches: the report shows memory for each stage, and it falls by
// one micro-batch's activations a stage. The tables at the ends come on top, so middle stages are
// compared: all but the saved activations is the same.
TEST(FieldCases, F44MemoryFallsWithTheStage) {
  const auto setting = setting_of({"llama-3.1-8b", "h100-sxm", 8, 4096});
  const auto r = report(setting, "pp=8 gbs=32");
  const auto activations = [&](std::size_t s) {
    return r.stages[s].terms_GiB[core::index_of(core::MemoryTerm::activations)];
  };
  // 4 layers a stage. Bytes of a token in a layer: inputs of two norms and two linear regions 8 h,
  // q, k and v 2 (h + 2 kv), the attention's output 2 h, gate, up and product 6 F, 4 a head.
  const double h = 4096, kv = 1024, F = 14336, a = 32;
  const double micro_batch =
      4 * 4096 * (8 * h + 2 * (h + 2 * kv) + 2 * h + 6 * F + 4 * a) / 1073741824.0;
  for (std::size_t s = 1; s + 2 < 8; ++s)
    EXPECT_NEAR(activations(s) - activations(s + 1), micro_batch, 1e-9);
}

double GiB_of(const StepReport& r, std::initializer_list<core::MemoryTerm> terms) {
  double sum = 0.0;
  for (const auto term : terms) sum += r.stages[0].terms_GiB[core::index_of(term)];
  return sum;
}

// F13: with everything offloaded the estimator says 0.49 GiB; a real run took 14.7 GB after start and 21.3 GB in training. The
// need in training is over 5 GB, with live weights, buckets, activations and context on lines of their own.
TEST(FieldCases, F13TrainingNeedsMoreThanTheStates) {
  using core::MemoryTerm;
  const auto setting = setting_of({"llama-2-7b", "a100-sxm-40", 4, 2048, "", "", "deepspeed"});
  const auto r = report(setting, "dp=4 zero=3 mb=1 gbs=4 recompute=full offload=optimizer+weights");
  EXPECT_GT(r.peak_memory_GiB * 1.0737, 5.0);
  for (const auto term : {MemoryTerm::weights, MemoryTerm::buffers, MemoryTerm::activations, MemoryTerm::context}) {
    EXPECT_GT(GiB_of(r, {term}), 0.1) << name_of(term);
  }
  EXPECT_EQ(GiB_of(r, {MemoryTerm::gradients, MemoryTerm::optimizer}), 0.0);
}

// F19: llama-3.1-70b in full at 16 bytes a parameter, all states over all GPUs, micro-batch 1, sequence 8192, full recompute: 8
// GPUs of 80 GB no, 16 no or with nothing to spare, 32 yes. On 8 with the optimizer and weights on the host, yes.
TEST(FieldCases, F19SeventyBillionOn80GB) {
  const auto on = [](std::int64_t gpus, const std::string& text) {
    return report(setting_of({"llama-3.1-70b", "h100-sxm", gpus, 8192, "bf16-grad16", "", "fsdp"}),
                  "zero=3 mb=1 recompute=full gbs=32 dp=" + std::to_string(gpus) + text, core::Grain::cell);
  };
  const auto eight = on(8, "");
  EXPECT_EQ(eight.fits, Fits::no);
  EXPECT_NEAR(eight.stages[0].states_GiB, 131.0, 1.5);
  EXPECT_NE(on(16, "").fits, Fits::yes);
  EXPECT_EQ(on(32, "").fits, Fits::yes);
  EXPECT_EQ(on(8, " offload=optimizer+weights").fits, Fits::yes);
}

// F21: a full fine-tune of 7B on one GPU of 80 GB does not fit: 100.4 GiB at 16 bytes. It does with the optimizer on the host.
TEST(FieldCases, F21SevenBillionOnOneGpu) {
  const auto setting = setting_of({"llama-2-7b", "a100-sxm-80", 1, 4096, "bf16-grad16"});
  const auto r = report(setting, "mb=1 gbs=8 recompute=full");
  EXPECT_EQ(r.fits, Fits::no);
  EXPECT_NEAR(r.stages[0].states_GiB, 100.4, 0.5);
  EXPECT_EQ(report(setting, "mb=1 gbs=8 recompute=full offload=optimizer").fits, Fits::yes);
}

// F22: ZeRO-2 with the optimizer on the host on two GPUs of 40 GB, 8B, bf16, micro-batch 2: does not fit, weights alone 14.9 GiB;
// ZeRO-3 with offload does.
TEST(FieldCases, F22ZeroTwoOnTwoGpusOf40GB) {
  const auto setting = setting_of({"llama-3.1-8b", "a100-sxm-40", 2, 2048, "", "", "deepspeed"});
  const auto two = report(setting, "dp=2 zero=2 mb=2 gbs=8 offload=optimizer");
  EXPECT_EQ(two.fits, Fits::no);
  EXPECT_NEAR(GiB_of(two, {core::MemoryTerm::weights}), 14.9, 0.1);
  EXPECT_EQ(report(setting, "dp=2 zero=3 mb=2 gbs=8 offload=optimizer+weights").fits, Fits::yes);
}

}  // namespace

// Ring attention in steps (arXiv 2310.01889; balanced as in Megatron-LM's p2p ring: an early and a late part of the sequence a
// rank): what each step computes, adds up and passes on.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/core/block_bodies.h"

namespace core {
namespace {

using block_bodies::body;
using block_bodies::Setting;

std::vector<const OpSpec*> all_of(const std::vector<BodyOp>& ops, std::string_view name) {
  std::vector<const OpSpec*> out;
  for (const auto& op : ops) {
    if (op.spec.name == name) out.push_back(&op.spec);
  }
  return out;
}

// llama-3.1-8b: 32 heads of 128, 8 key-value heads.
constexpr double heads = 32, kv_heads = 8, width = 128, s = 8192, b = 2;

// Balanced, cp squares of half work each are the causal half of the whole by cp: 2 s^2 / 2 widths over cp. Unbalanced, the last
// rank's queries meet all keys before them: s^2 / cp^2 (cp - 1/2) pairs. Backward 2.5 times (arXiv 2307.08691, section 4.1).
TEST(Ring, StepsAddUpToTheCausalTotal) {
  const auto model = load_model("llama-3.1-8b");
  for (const double cp : {1.0, 2.0, 4.0, 8.0, 16.0}) {
    for (const bool balanced : {true, false}) {
      const auto text = "cp=" + std::to_string(static_cast<int>(cp)) + ":ring" + (balanced ? "" : ":unbalanced") + " mb=2 gbs=2";
      const Setting setting(model, cp == 1.0 ? "mb=2 gbs=2" : text, 8192);
      const auto ops = body(model, "attention", setting.context);
      const double pairs = balanced || cp == 1.0 ? s * s / 2.0 / cp : s / cp * s / cp * (cp - 0.5);
      const double forward = 2.0 * 2.0 * width * heads * b * pairs;
      EXPECT_DOUBLE_EQ(block_bodies::flops(ops.forward, OpKind::attention), forward) << text;
      EXPECT_DOUBLE_EQ(block_bodies::flops(ops.backward, OpKind::attention), 2.5 * forward) << text;
      EXPECT_EQ(all_of(ops.forward, "core_attention").size(), static_cast<std::size_t>(cp));
      EXPECT_EQ(all_of(ops.backward, "core_attention_backward").size(), static_cast<std::size_t>(cp));
    }
  }
}

// Of s / cp queries: the own keys causal, then the early half of each other rank's.
TEST(Ring, AStepIsAKernelOfItsOwnShape) {
  const auto model = load_model("llama-3.1-8b");
  const Setting setting(model, "cp=4:ring mb=2 gbs=2", 8192);
  const auto ops = body(model, "attention", setting.context);
  for (const auto& kernels : {all_of(ops.forward, "core_attention"), all_of(ops.backward, "core_attention_backward")}) {
    ASSERT_EQ(kernels.size(), 4u);
    for (const auto* kernel : kernels) {
      const bool own = kernel == kernels.front();
      EXPECT_EQ(kernel->causal, own);
      EXPECT_EQ(kernel->m, 2048);
      EXPECT_EQ(kernel->n, own ? 2048 : 1024);
      EXPECT_EQ(kernel->batch, 64);
      EXPECT_EQ(kernel->kv_batch, 16);
      EXPECT_DOUBLE_EQ(kernel->flops.value, kernels.front()->flops.value);
    }
  }
}

// Each exchange is launched beside the step before the one that needs it, each step after the first adds up: forward an fp32
// output is read and written (4 + 4) and a 16-bit one read (2), and three fp32 log-sum-exps a row; backward the same of the
// queries' gradients, and of half a rank's keys and values three 16-bit gradients.
TEST(Ring, PassesKeysBesideTheStepBeforeAndAddsUpAfterEach) {
  const auto model = load_model("llama-3.1-8b");
  const Setting setting(model, "cp=3:ring mb=2 gbs=2", 6144);
  const auto ops = body(model, "attention", setting.context);
  const double tokens = b * 2048;
  const double kv = 2.0 * tokens * 2 * kv_heads * width;
  const auto ring_of = [&](const std::vector<BodyOp>& all) {
    std::vector<const BodyOp*> out;
    for (const auto& op : all) {
      const bool kernel = op.spec.kind == OpKind::attention;
      if (kernel || op.scope == Scope::context || std::string_view(op.spec.name).starts_with("cp_ring_merge")) out.push_back(&op);
    }
    return out;
  };
  const double merged = tokens * (10.0 * heads * width + 12.0 * heads);
  const double merged_backward = tokens * 10.0 * heads * width + 3.0 * kv / 2.0;
  for (const bool forward : {true, false}) {
    const auto ring = ring_of(forward ? ops.forward : ops.backward);
    std::string kinds;
    for (const auto* op : ring) kinds += std::string(name_of(op->spec.kind)) + " ";
    EXPECT_EQ(kinds, "send_receive attention send_receive attention memory_bound attention memory_bound ");
    ASSERT_EQ(ring.size(), 7u);
    for (const auto i : {0, 2}) {
      EXPECT_TRUE(ring[static_cast<std::size_t>(i)]->overlaps_next);
      EXPECT_DOUBLE_EQ(ring[static_cast<std::size_t>(i)]->spec.bytes.value, forward ? kv : 2.0 * kv);
    }
    for (const auto i : {4, 6}) {
      EXPECT_DOUBLE_EQ(ring[static_cast<std::size_t>(i)]->spec.bytes.value, forward ? merged : merged_backward);
    }
  }
}

// A window, a chunk or unfused scores: one kernel beside one exchange.
TEST(Ring, IsOneKernelWhereKeysAreLimited) {
  const auto windowed = load_model("mistral-7b");
  const Setting setting(windowed, "cp=4:ring gbs=1", 32768);
  EXPECT_EQ(all_of(body(windowed, "attention", setting.context).forward, "core_attention").size(), 1u);
  // A window as long as the sequence limits nothing.
  const Setting whole(windowed, "cp=4:ring gbs=1", 4096);
  EXPECT_EQ(all_of(body(windowed, "attention", whole.context).forward, "core_attention").size(), 4u);
}

// A ring holds keys and values in use and on their way, an fp32 sum of outputs and the partial output that is added; gathered,
// keys and values of the whole sequence are there. Backward their gradients are, too.
TEST(Ring, HoldsTwoBlocksOfKeysAndTheSumOfOutputs) {
  const auto model = load_model("llama-3.1-8b");
  const auto transients = [&](const std::string& how) {
    const Setting setting(model, "cp=4:" + how + " gbs=1", 8192);
    const auto a = body(model, "attention", setting.context);
    return std::pair{a.forward_transient.value, a.backward_transient.value};
  };
  const double kv = 2.0 * 2.0 * kv_heads * width;  // of a token
  const auto without = transients("ulysses"), ring = transients("ring"), gathered = transients("all-gather");
  EXPECT_DOUBLE_EQ(ring.first - without.first, 2048 * (2.0 * kv + 6.0 * heads * width));
  EXPECT_DOUBLE_EQ(ring.second - without.second, 2048 * (4.0 * kv + 6.0 * heads * width));
  EXPECT_DOUBLE_EQ(gathered.first - without.first, 8192 * kv);
  EXPECT_DOUBLE_EQ(gathered.second - without.second, 2.0 * 8192 * kv);
}

}  // namespace
}  // namespace core

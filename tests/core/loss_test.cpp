// What the loss keeps, moves and computes, unfused, fused and by chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/graph/memory.h"
#include "core/graph/step_work.h"
#include "tests/core/plans.h"

namespace core {
namespace {

constexpr double GiB = 1024.0 * 1024.0 * 1024.0;

struct Case {
  ModelSpec model;
  Framework framework = load_framework("fsdp", "hopper");
  Recipe recipe = load_recipe("bf16");

  explicit Case(const std::string& name) : model(load_model(name)) {}
  Body output(const std::string& plan, std::int64_t seq) const {
    return bodies_of(model, body_context(plans::plan(plan), recipe, framework, model, seq, AttentionKernel::flash2)).output;
  }
  void set_vocab(std::int64_t vocab) {
    for (auto* blocks : {&model.embedding, &model.output}) {
      for (auto& block : *blocks) {
        if (block.kind == "output" || block.kind == "embedding") block.shape.set("vocab", vocab);
      }
    }
  }
};

double saved(const Body& body, const std::string& name) {
  double sum = 0.0;
  for (const auto& tensor : body.saved) sum += tensor.name == name ? tensor.bytes.value : 0.0;
  return sum;
}

double gemm_flops(const Body& body) {
  double sum = 0.0;
  for (const auto* ops : {&body.forward, &body.backward}) {
    for (const auto& op : *ops) sum += op.spec.flops.value;
  }
  return sum;
}

double traffic(const std::vector<BodyOp>& ops, const std::string& name) {
  double sum = 0.0;
  for (const auto& op : ops) sum += op.spec.name == name ? op.spec.bytes.value : 0.0;
  return sum;
}

// Field case F27: 8,192 tokens, a vocabulary of 151,936, fp32: 4.637 GiB whole, 0.580 GiB in chunks of 1,024 tokens; with
// tensor parallel each divided by its size.
TEST(Loss, MemoryByChunks) {
  Case c("qwen3-8b");
  c.framework.losses[static_cast<std::size_t>(Loss::linear)].transient = 4.0;
  c.framework.loss_chunk_tokens = 1024;
  const double whole = 4.0 * 8192 * 151936, chunk = whole / 8;
  EXPECT_NEAR(whole / GiB, 4.637, 0.0005);
  EXPECT_NEAR(chunk / GiB, 0.580, 0.0005);
  for (const std::int64_t tp : {1, 2, 4}) {
    const std::string t = "tp=" + std::to_string(tp);
    EXPECT_EQ(saved(c.output(t, 8192), "logits"), whole / static_cast<double>(tp));
    const auto linear = c.output(t + " loss=linear", 8192);
    EXPECT_EQ(saved(linear, "logits"), 0.0);
    EXPECT_EQ(linear.forward_transient.value, chunk / static_cast<double>(tp));
  }
}

// Fused: 16-bit logits and nothing beside them, half of what fp32 logits take (field case F25: 7.8 GiB and 2.0 GiB).
TEST(Loss, FusedKeepsSixteenBits) {
  for (const auto& [name, vocab] : {std::pair{"llama-3.1-8b", 128256.0}, {"llama-2-7b", 32000.0}}) {
    const Case c(name);
    EXPECT_EQ(saved(c.output("", 16384), "logits"), 4.0 * 16384 * vocab);
    const auto fused = c.output("loss=fused", 16384);
    EXPECT_EQ(saved(fused, "logits"), 2.0 * 16384 * vocab);
    EXPECT_EQ(fused.forward_transient.value, 0.0);
    // Online softmax reads once; the gradient reads and writes in place.
    EXPECT_EQ(traffic(fused.forward, "loss"), 6.0 * 16384 * vocab);
  }
}

// Chunks of arXiv 2410.10989: ceil(V / h) parts, rounded up to a power of two tokens. Its own example: V = 32,000, h = 4,096
// and 16,384 tokens give 8 parts of 2,048.
TEST(Loss, ChunksAreAsLargeAsTheInput) {
  const Case c("llama-2-7b");
  const auto body = c.output("loss=linear", 16384);
  std::int64_t forward = 0;
  for (const auto& op : body.forward) {
    if (op.spec.name != "logits") continue;
    EXPECT_EQ(op.spec.m, 2048);
    ++forward;
  }
  EXPECT_EQ(forward, 8);
  EXPECT_EQ(body.forward_transient.value, 2.0 * 2048 * 32000);
}

// Gradients made at once cost no further FLOPs and are kept: of the input, 2 bytes x tokens x h, and of the weight.
TEST(Loss, LinearKeepsGradientsOrMakesLogitsAgain) {
  Case c("llama-3.1-8b");
  const double tokens = 4000, h = 4096, V = 128256;  // tokens that chunks do not divide
  const auto unfused = c.output("", 4000);
  const auto gradients = c.output("loss=linear", 4000);
  EXPECT_DOUBLE_EQ(gemm_flops(unfused), 6 * tokens * h * V);
  EXPECT_NEAR(gemm_flops(gradients) / gemm_flops(unfused), 1.0, 1e-12);
  EXPECT_EQ(saved(gradients, "output input gradient"), 2 * tokens * h);
  EXPECT_EQ(saved(gradients, "output weight gradient"), 2 * h * V);
  EXPECT_TRUE(std::none_of(gradients.backward.begin(), gradients.backward.end(),
                           [](const BodyOp& op) { return op.spec.kind == OpKind::gemm; }));

  // Logits made again: one forward GEMM more, a third of the forward and backward work.
  c.framework.linear_loss = LinearLoss::recompute;
  const auto again = c.output("loss=linear", 4000);
  EXPECT_NEAR(gemm_flops(again) / gemm_flops(unfused), 4.0 / 3.0, 1e-12);
  EXPECT_EQ(saved(again, "loss statistics"), 4 * tokens);
  EXPECT_EQ(saved(again, "output input"), 2 * tokens * h);
  EXPECT_EQ(saved(again, "output weight gradient"), 0.0);
}

// The sums over the vocabulary's parts and the gradient of the input cross the tensor-parallel ranks in each of them.
TEST(Loss, IsReducedOverTheVocabularysParts) {
  for (const std::string way : {"", " loss=fused", " loss=linear"}) {
    const Case c("llama-2-7b");
    const auto body = c.output("tp=2" + way, 16384);
    for (const auto* part : {"loss_maximum", "loss_target", "loss_sum"}) {
      EXPECT_EQ(traffic(body.forward, part), 4.0 * 16384) << way;
    }
    EXPECT_EQ(traffic(body.backward, "tp_gradient_all_reduce"), 2.0 * 16384 * 4096) << way;
  }
}

// Beside the logits that are kept: what the loss itself needs, or the 16-bit gradient in their place and that of the input.
TEST(Loss, PeakIsItsOwnOrThatOfTheInputsGradient) {
  Case c("llama-2-7b");
  c.framework = load_framework("megatron", "hopper");
  const double n = 16384.0 * 32000, input = 2.0 * 16384 * 4096;
  const auto unfused = c.output("", 16384);
  EXPECT_EQ(unfused.forward_transient.value, 2.0 * n);
  EXPECT_EQ(unfused.backward_transient.value, 2.0 * n);
  EXPECT_EQ(c.output("loss=fused", 16384).backward_transient.value, input);
  c.set_vocab(1024);  // fewer logits than the input has elements
  EXPECT_EQ(c.output("", 16384).backward_transient.value, input - 2.0 * 16384 * 1024);
}

// Megatron-Core's native fusion: fp32 softmax 4, its copy 4 and 16-bit logits 2; with the differences of 2025 14 bytes.
TEST(Loss, NativeFusionHoldsCopiesOfTheLogits) {
  Case c("llama-2-7b");
  c.framework = load_framework("megatron", "hopper");
  const double n = 16384.0 * 32000;
  const auto peak = [&](const LossFigures& figures) {
    c.framework.losses[static_cast<std::size_t>(Loss::unfused)] = figures;
    const auto body = c.output("", 16384);
    return saved(body, "logits") + body.forward_transient.value;
  };
  EXPECT_EQ(peak(*c.framework.native_loss), 10.0 * n);
  EXPECT_EQ(peak(*c.framework.native_loss_2025), 14.0 * n);
}

// With sequence parallel the output layer's input is gathered: into memory that Megatron-LM keeps, else while it is needed.
TEST(Loss, GatheredInputHasMemoryOfItsOwn) {
  Case c("llama-2-7b");
  const double whole = 2.0 * 16384 * 4096, n = 16384.0 * 32000 / 2;
  const auto freed = c.output("tp=2 sp", 16384);
  EXPECT_EQ(freed.gather_buffer.value, 0.0);
  EXPECT_EQ(freed.forward_transient.value, c.framework.loss(Loss::unfused).transient * n + whole);
  c.framework = load_framework("megatron", "hopper");
  const auto kept = c.output("tp=2 sp", 16384);
  EXPECT_EQ(kept.gather_buffer.value, whole);
  EXPECT_EQ(kept.forward_transient.value, 2.0 * n);
  EXPECT_EQ(c.output("tp=2", 16384).gather_buffer.value, 0.0);
}

// Field case F29: a 9B model with a vocabulary of 248,320 and some twenty thousand tokens on a GPU of 80 GB: steady 30 GiB,
// a spike of 47 GiB and more from the unfused loss. Linear, the loss takes less than a tenth of it.
TEST(Loss, SpikeOfALargeVocabulary) {
  Case c("qwen3-8b");
  c.set_vocab(248320);
  const auto peak = [&](const std::string& plan) {
    const auto memory = body_memory(c.output(plan, 20480), c.framework);
    return static_cast<double>(memory.saved() + std::max(memory.forward_transient, memory.backward_transient)) / GiB;
  };
  EXPECT_GT(peak(""), 47.0);
  EXPECT_LT(peak("loss=fused"), peak("") / 3);
  EXPECT_LT(peak("loss=linear"), peak("") / 10);
  // The logits are by far the largest of what the loss holds.
  const auto unfused = body_memory(c.output("", 20480), c.framework);
  EXPECT_GT(unfused.logits, 50 * unfused.activations);
}

// --- frameworks ------------------------------------------------------------------------------------

// Eager norms, SwiGLU and rotary positions move their tensors several times; fused, once.
TEST(Framework, EagerKernelsMoveMore) {
  const auto model = load_model("llama-2-7b");
  const auto recipe = load_recipe("bf16");
  const auto layer = [&](const std::string& name) {
    const auto framework = load_framework(name, "hopper");
    return bodies_of(model, body_context(plans::plan(""), recipe, framework, model, 4096, AttentionKernel::flash2))
        .kinds.front();
  };
  const auto fused = layer("fsdp"), eager = layer("deepspeed");
  const auto framework = load_framework("deepspeed", "hopper");
  const double tokens = 4096, h = 4096, F = 11008;
  EXPECT_EQ(traffic(fused.forward, "norm"), 2 * 2 * 2 * tokens * h);  // two norms read and write
  EXPECT_EQ(traffic(fused.forward, "activation"), 3 * 2 * tokens * F);
  const auto ratio = [&](const std::string& name) { return traffic(eager.forward, name) / traffic(fused.forward, name); };
  EXPECT_NEAR(ratio("norm"), framework.norm_traffic, 1e-12);
  EXPECT_NEAR(ratio("activation"), framework.activation_traffic, 1e-12);
  EXPECT_NEAR(ratio("rope"), framework.rope_traffic, 1e-12);
  // 36 bytes an element instead of 4, 10 instead of 6, 20 instead of 4.
  EXPECT_NEAR(framework.norm_traffic, 36.0 / 4, 0.01);
  EXPECT_NEAR(framework.activation_traffic, 10.0 / 6, 0.01);
  EXPECT_NEAR(framework.rope_traffic, 20.0 / 4, 0.01);
}

// Inside a graph the host launches at once.
TEST(Framework, GraphsTakeLessOfTheHost) {
  for (const auto* name : {"megatron", "fsdp", "deepspeed"}) {
    const auto framework = load_framework(name, "hopper");
    EXPECT_LT(framework.host(CudaGraphs::layers).value, 0.1 * framework.host(CudaGraphs::none).value) << name;
  }
}

// PyTorch's workspaces of two handles, 8.125 or 32 MiB, and Transformer Engine's, 4 or 32 MiB: one, and four more for experts.
TEST(Framework, WorkspacesGrowWithHopper) {
  constexpr double MiB = 1024.0 * 1024.0;
  const auto of = [](const char* name, const char* arch, bool experts) {
    return load_framework(name, arch).workspaces.all(experts).value;
  };
  EXPECT_EQ(of("megatron", "ampere", false), (2 * 8.125 + 4) * MiB);
  EXPECT_EQ(of("megatron", "hopper", false), (2 * 32 + 32) * MiB);
  EXPECT_EQ(of("megatron", "blackwell", true), (2 * 32 + 5 * 32) * MiB);
  EXPECT_EQ(of("fsdp", "hopper", true), 2 * 32 * MiB);
}

// Megatron-FSDP shards the layers of Megatron-Core, whose loss they keep.
TEST(Framework, ShardedKeepsItsOwnLoss) {
  const auto layers = load_framework("megatron", "hopper"), fsdp = load_framework("fsdp", "hopper"), sharded = sharded_by(layers, fsdp);
  EXPECT_EQ(sharded.loss(Loss::unfused).transient, layers.loss(Loss::unfused).transient);
  EXPECT_NE(sharded.loss(Loss::unfused).transient, fsdp.loss(Loss::unfused).transient);
  EXPECT_EQ(sharded.linear_loss, layers.linear_loss);
  EXPECT_EQ(sharded.bucket_parameters, fsdp.bucket_parameters);
}

// DeepSpeed: two buffers of 5e8 gradients in 16 bits, a rank's share of all in fp32 at the step, and 5e7 parameters gathered
// ahead where they are sharded.
TEST(Framework, DeepSpeedsBuffers) {
  const auto framework = load_framework("deepspeed", "hopper");
  RankParameters p;
  p.all.dense = p.gemm.dense = 7e9;
  p.largest_body = 2e8;
  const auto buffers = [&](const std::string& plan) {
    return static_cast<double>(resident_memory(p, plans::plan(plan), load_recipe("bf16-grad16"), framework)
                                   [index_of(MemoryTerm::buffers)]) -
           framework.workspaces.all(false).value;
  };
  EXPECT_NEAR(buffers("dp=8 zero=1 gbs=8"), 2 * 5e8 * 2 + 4 * 7e9 / 8, 512);
  EXPECT_NEAR(buffers("dp=8 zero=3 gbs=8"), 2 * 5e8 * 2 + 2 * (2e8 + 5e7) + (2 + 2) * 2e8, 512);
  EXPECT_NEAR(buffers("gbs=1"), 0.0, 512);
}

}  // namespace
}  // namespace core

// Latent attention, its indexer, and the kinds of attention beside it, against closed forms in their sizes.
#include <gtest/gtest.h>

#include <string>

#include "core/graph/step_work.h"
#include "tests/core/block_bodies.h"

namespace core {
namespace {

using block_bodies::body;
using block_bodies::bytes;
using block_bodies::find;
using block_bodies::flops;
using block_bodies::gemm_flops;
using block_bodies::saved;
using block_bodies::Setting;

// DeepSeek-V3: h 7168, 128 heads, latents of 1536 and 512, keys of 128 + 64, values of 128.
constexpr double h = 7168, a = 128, cq = 1536, ckv = 512, nope = 128, rope = 64, v = 128, s = 4096;
constexpr double qk = nope + rope, t = s, sixteen_bits = 2.0;
constexpr double down = h * cq + h * (ckv + rope), up = cq * a * qk + ckv * a * (nope + v), out = a * v * h;

// DeepSeek-V2, arXiv 2405.04434, equations 9 to 19, a GEMM each.
TEST(MlaBlock, FlopsAreThoseOfItsWeightsAndScores) {
  const auto model = load_model("deepseek-v3");
  const Setting setting(model, "dp=1", 4096);
  const auto one = body(model, "mla", setting.context);
  EXPECT_DOUBLE_EQ(gemm_flops(one.forward), 2 * t * (down + up + out));
  EXPECT_DOUBLE_EQ(gemm_flops(one.backward), 4 * t * (down + up + out));
  // Scores of 192 and values of 128 over half of the pairs; backward does the scores again.
  const double core = 2 * (s * s / 2) * a * (qk + v);
  EXPECT_DOUBLE_EQ(flops(one.forward, OpKind::attention), core);
  EXPECT_DOUBLE_EQ(flops(one.backward, OpKind::attention), 2.5 * core);
  EXPECT_EQ(find(one.forward, "core_attention")->k, 192);
  EXPECT_EQ(find(one.forward, "core_attention")->v_dim, 128);
}

TEST(MlaBlock, ProjectsQueriesAtOnceWithoutALatent) {
  const auto model = load_model("deepseek-v2-lite");
  const Setting setting(model, "dp=1", 4096);
  const auto one = body(model, "mla", setting.context);
  const double weights = 2048.0 * 16 * 192 + 2048.0 * (512 + 64) + 512.0 * 16 * 256 + 16.0 * 128 * 2048;
  EXPECT_DOUBLE_EQ(gemm_flops(one.forward), 2 * t * weights);
  EXPECT_EQ(find(one.forward, "q_down"), nullptr);
}

// Down-projections are whole on each rank: without sequence parallel each does them for all tokens, with it for its own.
TEST(MlaBlock, TensorParallelismDividesHeadsAndGathersLatents) {
  const auto model = load_model("deepseek-v3");
  const Setting plain(model, "tp=8", 4096), sp(model, "tp=8 sp", 4096);
  EXPECT_DOUBLE_EQ(gemm_flops(body(model, "mla", plain.context).forward), 2 * t * (down + (up + out) / 8));
  const auto one = body(model, "mla", sp.context);
  EXPECT_DOUBLE_EQ(gemm_flops(one.forward), 2 * t * (down + up + out) / 8);
  // Not the input but both latents and the rotary key are gathered; the output is scattered whole.
  EXPECT_DOUBLE_EQ(bytes(one.forward, OpKind::all_gather), sixteen_bits * t * (cq + ckv + rope));
  EXPECT_DOUBLE_EQ(bytes(one.forward, OpKind::reduce_scatter), sixteen_bits * t * h);
  EXPECT_DOUBLE_EQ(bytes(one.backward, OpKind::reduce_scatter), sixteen_bits * t * (cq + ckv + rope));
}

// In 16 bits: the input; both latents before and after their norms, the rotary key; q and k of 192, v of 128 for each head;
// the output; a log-sum-exp in fp32 a row.
TEST(MlaBlock, KeepsLatentsAndWhatTheyBecome) {
  const auto model = load_model("deepseek-v3");
  const Setting setting(model, "dp=1", 4096);
  const auto one = body(model, "mla", setting.context);
  const double latents = 2 * cq + 2 * ckv + rope, heads = a * (2 * qk + v);
  EXPECT_DOUBLE_EQ(saved(one), 2 * t * (h + latents + heads + a * v) + 4 * t * a);
  // Recompute of the up-projections keeps latents before their norms.
  const auto layer = bodies_of(model, setting.context).kinds.front();
  const auto less = with_recompute(layer, Recompute::modules, modules::mla_up);
  EXPECT_DOUBLE_EQ(saved(layer) - saved(less), 2 * t * (heads + cq + ckv));
  double again = 0.0;
  for (const auto& op : less.backward) {
    if (op.recompute) again += op.spec.flops.value;
  }
  EXPECT_DOUBLE_EQ(again, 2 * t * up);
}

// DeepSeek-V3.2, arXiv 2512.02556, section 2.1: 64 heads of 128 score all keys (a product, a weight and a sum each), core
// attention meets 2048 of them.
TEST(MlaBlock, AnIndexerScoresAllKeysAndAttentionMeetsTheChosen) {
  const auto model = load_model("deepseek-v3.2");
  const double seq = 16384;
  const Setting setting(model, "dp=1", 16384);
  const auto one = body(model, "mla", setting.context);
  const auto* indexer = find(one.forward, "indexer");
  ASSERT_NE(indexer, nullptr);
  EXPECT_DOUBLE_EQ(indexer->flops.value, (seq * seq / 2) * 64 * (2 * 128 + 2));
  const auto* core = find(one.forward, "core_attention");
  EXPECT_TRUE(core->sparse);
  EXPECT_DOUBLE_EQ(core->flops.value, 2 * (seq * 2048 - 2048.0 * 2048 / 2) * a * (qk + v));
  EXPECT_DOUBLE_EQ(gemm_flops(one.forward), 2 * seq * (down + up + out + cq * 64 * 128 + h * 128 + h * 64));
}

TEST(MlaBlock, CacheOfATokenIsItsLatentAndRotaryKey) {
  EXPECT_DOUBLE_EQ(kv_cache_bytes_per_token(load_model("deepseek-v3")), 2.0 * 61 * (512 + 64));
  EXPECT_DOUBLE_EQ(kv_cache_bytes_per_token(load_model("deepseek-v3.2")), 2.0 * 61 * (512 + 64 + 128));
  // Kimi Linear: 7 of 27 layers.
  EXPECT_DOUBLE_EQ(kv_cache_bytes_per_token(load_model("kimi-linear-48b-a3b")), 2.0 * 7 * (512 + 64));
}

// DeepSeek-V3's README: 671B parameters and a module of 14B, in which the shared tables are stored once more, 685B in files.
TEST(MtpModule, HasAProjectionALayerAndASharedTable) {
  const auto model = load_model("deepseek-v3");
  const auto count = count_parameters(model);
  const double layer = down + up + out + cq + ckv + 2 * h + 257 * 3 * h * 2048 + 256 * h + 256;
  EXPECT_DOUBLE_EQ(static_cast<double>(count.mtp), layer + 2 * h * h + 3 * h);
  EXPECT_NEAR(static_cast<double>(count.total + count.mtp + count.embedding + count.output) / 685e9, 1.0, 1e-3);
  // It is trained: its GEMMs and its logits are in the FLOPs of a token.
  auto without = model;
  without.mtp.clear();
  const double active = down + up + out + 9 * 3 * h * 2048 + 256 * h + 2 * h * h;
  EXPECT_NEAR(flops_per_token_forward(model, 4096) - flops_per_token_forward(without, 4096),
              2 * (active + h * 129280) + 2 * s * a * (qk + v),
              1e-3);
}

// Field case of a full forward of DeepSeek-V3: weights a token uses but for the input table, and scores in full.
TEST(Model, ForwardFlopsOfExpertsAreThoseOfTheActiveOnes) {
  auto model = load_model("deepseek-v3");
  model.mtp.clear();
  const auto count = count_parameters(model);
  const double vectors = 61 * (cq + ckv + 2 * h) + 58 * 256 + h;
  const double weights = static_cast<double>(count.active - count.embedding) - vectors;
  EXPECT_DOUBLE_EQ(flops_per_token_forward(model, 4096), 2 * weights + 61 * 2 * s * a * (qk + v));
}

// Llama 4: 3 of 4 layers see chunks of 8192 tokens.
TEST(Attention, InChunksCostsWhatAChunkCosts) {
  const auto model = load_model("llama-4-scout");
  const Setting setting(model, "dp=1", 32768);
  const auto chunked = body(model, "attention", setting.context);
  const auto* core = find(chunked.forward, "core_attention");
  EXPECT_DOUBLE_EQ(core->flops.value, 4 * 2 * (8192.0 * 8192 / 2) * 40 * (128 + 128));
  double chunks = 0.0;
  for (const auto kind : model.layer_kind) {
    chunks += model.kinds[kind].blocks[1].shape.at("chunk") == 8192 ? 1 : 0;
  }
  EXPECT_DOUBLE_EQ(chunks, 36);
}

// Qwen3-Next: queries, their gate, keys and values of 256 from one input; the gate multiplies the output.
TEST(Attention, WithAGateProjectsAndKeepsIt) {
  const auto model = load_model("qwen3-next-80b-a3b");
  const Setting setting(model, "dp=1", 4096);
  const auto one = body(model, "attention", setting.context);
  const double q = 16 * 256, kv = 2 * 256;
  EXPECT_DOUBLE_EQ(gemm_flops(one.forward), 2 * t * 2048 * (2 * q + 2 * kv + q));
  // Input, q, k, v, what the norms read, log-sum-exp, gate, output before and after it.
  EXPECT_DOUBLE_EQ(saved(one), 2 * t * (2048 + q + 2 * kv + q + kv + 3 * q) + 4 * t * 16);
}

TEST(Attention, SinksAreOneParameterAHead) {
  const auto model = load_model("gpt-oss-20b");
  const auto& block = block_bodies::block_of(model, "attention");
  std::int64_t sinks = 0;
  for (const auto& tensor : block_kind("attention").tensors(block, model)) {
    sinks += tensor.name == "sinks" ? tensor.numel() : 0;
  }
  EXPECT_EQ(sinks, 64);
  EXPECT_EQ(model.kinds.size(), 2U);  // with and without a window
}

}  // namespace
}  // namespace core

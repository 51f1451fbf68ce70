// FLOPs and communication of a step's graph against the closed forms of their papers.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/lower.h"
#include "core/graph/step_work.h"
#include "tests/core/plans.h"

namespace core {
namespace {

constexpr double sixteen_bits = 2.0;

// A graph at each grain.
std::vector<StepGraph> graphs(const StepWork& work,
                              const ParallelPlan& plan,
                              Fold fold = Fold::yes) {
  std::vector<StepGraph> out;
  for (const auto grain : {Grain::cell, Grain::mixed, Grain::op})
    out.push_back(lower(work, plans::table(plan), grain, fold));
  return out;
}

double flops_of_all_ranks(const StepGraph& graph) {
  double sum = 0.0;
  for (std::int32_t r = 0; r < graph.ranks; ++r) {
    sum +=
        static_cast<double>(graph.multiplicity[static_cast<std::size_t>(r)]) * graph.flops(r).value;
  }
  return sum;
}

void expect_flops(const ModelSpec& model,
                  const std::string& text,
                  std::int64_t seq,
                  AttentionKernel attention,
                  double expected) {
  const auto plan = plans::plan(text);
  const auto work = plans::step(model, plan, seq, attention);
  for (const auto& graph : graphs(work, plan)) {
    EXPECT_NEAR(flops_of_all_ranks(graph) / expected, 1.0, 1e-12) << text;
  }
}

// --- FLOPs ---------------------------------------------------------------------------------------

// Narayanan et al. 2021 (arXiv 2104.04473), eq. 3 and appendix: a step of B sequences takes
// 72 B s l h^2 (1 + s / 6h + V / 12 l h); with full recompute each layer runs forward once more,
// 96 B s l h^2 (1 + s / 6h) for the layers, and the logits' 6 B s h V stay. With core-attention
// recompute the scores and their product, 4 B l s^2 h, are done again (arXiv 2205.05198, appendix
// A).
TEST(Flops, OfAGptStepAreMegatronsClosedForms) {
  const auto model = load_model("gpt3-22b");
  const double l = 48, h = 6144, V = 51200, s = 2048, B = 16;
  const double layers = 72 * B * s * l * h * h * (1 + s / (6 * h)), logits = 6 * B * s * h * V;
  EXPECT_NEAR((layers + logits) / (72 * B * s * l * h * h * (1 + s / (6 * h) + V / (12 * l * h))),
              1.0,
              1e-15);
  for (const std::string split : {"tp=1 gbs=16",
                                  "tp=8 gbs=16 mb=2",
                                  "tp=8 sp gbs=16",
                                  "pp=4 gbs=16",
                                  "tp=2 pp=4x2 gbs=16",
                                  "dp=4 gbs=16 zero=3",
                                  "tp=4 sp pp=3 dp=2 gbs=16 zero=1",
                                  "tp=2 pp=2 dp=2 gbs=16 zero=2",
                                  "pp=8 schedule=gpipe gbs=16"}) {
    const auto unfused = AttentionKernel::unfused;
    expect_flops(model, split, 2048, unfused, layers + logits);
    expect_flops(model, split + " recompute=full", 2048, unfused, 4.0 / 3.0 * layers + logits);
    expect_flops(model,
                 split + " recompute=selective",
                 2048,
                 unfused,
                 layers + logits + 4 * B * l * s * s * h);
  }
  // The first layer of each of 4 stages only.
  expect_flops(model,
               "pp=4 gbs=16 recompute=full:1",
               2048,
               AttentionKernel::unfused,
               layers * (1 + 4 / l / 3) + logits);
}

// Grouped queries and SwiGLU: a layer's weights are h (q + 2 kv) + q h + 3 h F, and the output
// layer h V; 6 FLOPs a token each. FlashAttention computes half of the scores, 2 s^2 q a sequence
// forward and 2.5 times that backward, which computes the scores again (arXiv 2307.08691,
// section 4.1).
TEST(Flops, OfALlamaStepAreItsClosedForm) {
  const auto model = load_model("llama-3.1-8b");
  const double l = 32, h = 4096, q = 4096, kv = 8 * 128, F = 14336, s = 4096, B = 8;
  const auto total = [&](double vocab) {
    const double weights = l * (h * (q + 2 * kv) + q * h + 3 * h * F) + h * vocab;
    return 6 * B * s * weights + B * l * 3.5 * (2 * s * s * q);
  };
  expect_flops(model, "gbs=8", 4096, AttentionKernel::flash2, total(128256));
  expect_flops(
      model, "tp=2 sp pp=2 dp=2 gbs=8 zero=1", 4096, AttentionKernel::flash3, total(128256));
  // The vocabulary is padded to a multiple of 128 tp: 251 x 512.
  expect_flops(model, "tp=4 gbs=8", 4096, AttentionKernel::flash2, total(251 * 512));
  // Core-attention recompute repeats the forward kernel, full recompute all of a layer's forward.
  expect_flops(model,
               "gbs=8 recompute=selective",
               4096,
               AttentionKernel::flash2,
               total(128256) + B * l * 2 * s * s * q);
  expect_flops(
      model,
      "gbs=8 recompute=full",
      4096,
      AttentionKernel::flash2,
      total(128256) + B * l * (2 * s * (h * (q + 2 * kv) + q * h + 3 * h * F) + 2 * s * s * q));
}

// Two key-value heads on eight ranks: each is held and computed by the four ranks that share it.
TEST(Flops, CopiedKeyValueHeadsAreComputedByEachRankThatHoldsThem) {
  const auto model = load_model("tiny-llama");
  const double l = 4, h = 64, F = 192, V = 1024, s = 64, B = 2, head = 8;
  const double kv_on_all_ranks = 8 * head;  // one head each instead of 2 in all
  const double weights = l * (h * (h + 2 * kv_on_all_ranks) + h * h + 3 * h * F) + h * V;
  expect_flops(model,
               "tp=8 gbs=2",
               64,
               AttentionKernel::flash2,
               6 * B * s * weights + B * l * 3.5 * 2 * s * s * h);
}

// A window of w tokens: position p meets min(p, w) keys, together s w - w^2 / 2.
TEST(Flops, OfASlidingWindowAreThoseOfItsPairs) {
  const auto model = load_model("mistral-7b");
  const double l = 32, h = 4096, q = 4096, kv = 1024, F = 14336, V = 32000, s = 8192, w = 4096;
  const double weights = l * (h * (q + 2 * kv) + q * h + 3 * h * F) + h * V;
  expect_flops(model,
               "gbs=1",
               8192,
               AttentionKernel::flash2,
               6 * s * weights + l * 3.5 * 4 * (s * w - w * w / 2) * q);
}

TEST(Flops, AreTheSameFoldedAndNot) {
  const auto model = load_model("tiny-gpt");
  for (const auto& plan : plans::grid(model, 4, 64)) {
    const auto work = plans::step(model, plan, 64);
    const double expected = flops_of_all_ranks(lower(work, plans::table(plan), Grain::cell));
    for (const auto fold : {Fold::yes, Fold::no}) {
      for (const auto& graph : graphs(work, plan, fold)) {
        EXPECT_NEAR(flops_of_all_ranks(graph) / expected, 1.0, 1e-12) << to_text(plan);
      }
    }
  }
}

// A model cut to its first layers, what a token's weights take forward (2 FLOPs a weight that it meets, layers and output layer
// apart), its core attention over the whole score matrix, and its scans.
struct Textbook {
  ModelSpec model;
  double layers = 0, output = 0;  // weights
  double attention = 0;           // FLOPs of a token and direction, full scores, of a sequence of s
  double scan = 0;                // FLOPs of a token forward
};

constexpr double textbook_seq = 1024;

ModelSpec first_layers(const std::string& name, std::size_t layers) {
  auto model = load_model(name);
  model.layer_kind.resize(layers);
  return model;
}

std::vector<Textbook> textbooks() {
  const double s = textbook_seq;
  std::vector<Textbook> out;
  {  // Dense, grouped queries: h 4096, 32 heads of 128, 8 key-value heads, F 14336.
    const double h = 4096, kv = 1024, F = 14336;
    out.push_back({first_layers("llama-3.1-8b", 4), 4 * (2 * h * h + 2 * h * kv + 3 * h * F), h * 128256, 4 * 4 * s * h, 0});
  }
  {  // Experts: 2 of 8 a token, and the router.
    const double h = 4096, kv = 1024, F = 14336;
    out.push_back({first_layers("mixtral-8x7b", 4), 4 * (2 * h * h + 2 * h * kv + 2 * 3 * h * F + 8 * h), h * 32000,
                   4 * 4 * s * h, 0});
  }
  {  // Latent attention (DeepSeek-V2, arXiv 2405.04434, appendix B: Lite): 16 heads of 128 + 64 and values of 128, a latent of
     // 512, queries at once; the first layer is dense, the others have 6 of 64 experts of 1408 and 2 shared.
    const double h = 2048;
    const double attention = h * 16 * 192 + h * (512 + 64) + 512 * 16 * (128 + 128) + 16 * 128 * h;
    const double experts = 64 * h + (6 + 2) * 3 * h * 1408;
    out.push_back({first_layers("deepseek-v2-lite", 4), 4 * attention + 3 * h * 10944 + 3 * experts, h * 102400,
                   4 * 2 * s * 16 * (192 + 128), 0});
  }
  {  // Kimi Linear (arXiv 2510.26692): of 4 layers 3 of Kimi Delta Attention, 32 heads of 128, and one of latent attention with
     // 32 heads; the first layer is dense, then 8 of 256 experts of 1024 and a shared one. The delta rule in chunks of 64.
    const double h = 2304, w = 4096, C = 64, d = 128;
    const double kda = h * (3 * w + 32 + 2 * d) + 2 * d * w + w * h;
    const double mla = h * 32 * 192 + h * (512 + 64) + 512 * 32 * 256 + 32 * 128 * h;
    out.push_back({first_layers("kimi-linear-48b-a3b", 4), 3 * kda + mla + 3 * h * 9216 + 3 * (256 * h + 9 * 3 * h * 1024),
                   h * 163840, 2 * s * 32 * (192 + 128), 3 * 32 * (6 * C * d + 4 * C * d + 6 * d * d + C * C / 3)});
  }
  {  // Nemotron-H (arXiv 2504.03624): M-M-M-M*-, 256 heads of 64 with a state of 256 in 8 groups, chunks of 128.
    const double h = 8192, inner = 16384, C = 128, N = 256, P = 64;
    const double mamba = h * (2 * inner + 2 * 8 * N + 256) + inner * h, mlp = 2 * h * 32768;
    out.push_back({first_layers("nemotron-h-56b", 9), 4 * mamba + 4 * mlp + 2 * h * h + 2 * h * 1024, h * 131072, 4 * s * h,
                   4 * (8 * 2 * C * N + 256 * (2 * C * P + 4 * N * P))});
  }
  return out;
}

// What ModelSpec counts of a token is the textbook's 2 N + attention + scans.
TEST(Flops, OfATokenForwardAreTheTextbooks) {
  for (const auto& t : textbooks()) {
    EXPECT_NEAR(flops_per_token_forward(t.model, 1024) / (2 * (t.layers + t.output) + t.attention + t.scan), 1.0, 1e-12)
        << t.model.name;
  }
}

// A whole step, D tokens: 6 N D, attention and its two backward products, the scans with what their backward does again (data/
// scans.json); fused, half of the scores and 2.5 times that backward. Full recompute repeats the layers forward, core-attention
// recompute the scores. The same however the step is divided, folded and not.
TEST(Flops, OfAStepAreSixNDAndAttentionForEveryKindOfModel) {
  const double D = 8 * textbook_seq, backward = 3;  // backward_per_forward of scans
  for (const auto& t : textbooks()) {
    for (const std::string split : {"dp=8 gbs=8", "cp=4:all-gather dp=2 gbs=8 mb=2 zero=3", "cp=2:ring pp=2 dp=2 gbs=8 layers=slots",
                                    "cp=2:ulysses dp=4 gbs=8 zero=1", "ep", "tp"}) {
      std::string text = split;
      const bool has_experts = count_parameters(t.model).active < count_parameters(t.model).total;
      if (split == "ep") {
        if (!has_experts) continue;
        text = "dp=8 ep=8 gbs=8 zero=1";
      }
      if (split == "tp") {
        // Kimi Linear's gates are computed by each tensor-parallel rank (core/model/blocks/kda.cpp).
        if (t.model.name.find("kimi") != std::string::npos) continue;
        text = has_experts ? "tp=2 sp dp=4 ep=2 etp=2 gbs=8 pp=1" : "tp=2 sp pp=2 dp=2 gbs=8 layers=slots";
      }
      for (const auto kernel : {AttentionKernel::unfused, AttentionKernel::flash2}) {
        const bool fused = kernel != AttentionKernel::unfused;
        const double scores = fused ? t.attention / 2 : t.attention, both = fused ? 3.5 : 3.0;
        const double step = 6 * (t.layers + t.output) + both * scores + (1 + backward) * t.scan;
        for (const auto& [recompute, again] :
             {std::pair<std::string, double>{"", 0.0}, {" recompute=selective", scores},
              {" recompute=full", 2 * t.layers + scores + t.scan}}) {
          const auto plan = plans::plan(text + recompute);
          ASSERT_EQ(why_not(t.model, plan, plan.gpus(), 1024), std::nullopt) << t.model.name << " " << text;
          const auto work = plans::step(t.model, plan, 1024, kernel);
          for (const auto fold : {Fold::yes, Fold::no}) {
            for (const auto& graph : graphs(work, plan, fold)) {
              EXPECT_NEAR(flops_of_all_ranks(graph) / (D * (step + again)), 1.0, 1e-12)
                  << t.model.name << " " << text << recompute << " " << name_of(kernel);
            }
          }
        }
      }
    }
  }
}

// Full recompute does every forward operation of a layer again, in order, ahead of the backward
// ones; core-attention recompute the attention kernel, just before its own backward.
TEST(Recompute, RepeatsTheForwardOperations) {
  const auto model = load_model("gpt3-22b");
  const auto recipe = load_recipe("bf16");
  const auto framework = load_framework("megatron", "hopper");
  const auto context =
      body_context(plans::plan("tp=8 sp"), recipe, framework, model, 2048, AttentionKernel::flash2);
  const auto plain = bodies_of(model, context).kinds.front();
  const auto names = [](const std::vector<BodyOp>& ops, bool recompute) {
    std::vector<std::string> out;
    for (const auto& op : ops) {
      if (op.recompute == recompute) out.push_back(op.spec.name.str());
    }
    return out;
  };
  const auto full = with_recompute(plain, Recompute::full, core::modules::core_attention);
  EXPECT_EQ(names(full.forward, false), names(plain.forward, false));
  EXPECT_EQ(names(full.backward, true), names(plain.forward, false));
  EXPECT_EQ(names(full.backward, false), names(plain.backward, false));
  for (std::size_t i = 0; i < plain.forward.size(); ++i) EXPECT_TRUE(full.backward[i].recompute);

  const auto selective = with_recompute(plain, Recompute::selective, core::modules::core_attention);
  EXPECT_EQ(names(selective.backward, true), std::vector<std::string>{"core_attention"});
  EXPECT_EQ(names(selective.backward, false), names(plain.backward, false));
  for (std::size_t i = 0; i < selective.backward.size(); ++i) {
    if (selective.backward[i].recompute) {
      // It stands before the backward operations of its block, and after those of the blocks that follow.
      EXPECT_EQ(selective.backward.at(i + 1).block, selective.backward[i].block);
      EXPECT_NE(selective.backward.at(i - 1).block, selective.backward[i].block);
    }
  }
}

// --- tensor-parallel bytes -----------------------------------------------------------------------

struct Expected {
  double all_reduce = 0, all_gather = 0, reduce_scatter = 0, send_receive = 0;
};

// Bytes of each kind of collective on every rank of every stage, at each grain, folded and not.
void expect_bytes(const ModelSpec& model,
                  const std::string& text,
                  std::int64_t seq,
                  const std::vector<Expected>& stages) {
  const auto plan = plans::plan(text);
  const auto work = plans::step(model, plan, seq);
  for (const auto fold : {Fold::yes, Fold::no}) {
    for (const auto& graph : graphs(work, plan, fold)) {
      for (std::int32_t r = 0; r < graph.ranks; ++r) {
        const auto& expected = stages[static_cast<std::size_t>(r / (graph.ranks / plan.pp))];
        const auto got = [&](OpKind kind) { return graph.bytes(r, kind).value; };
        EXPECT_DOUBLE_EQ(got(OpKind::all_reduce), expected.all_reduce) << text << " rank " << r;
        EXPECT_DOUBLE_EQ(got(OpKind::all_gather), expected.all_gather) << text << " rank " << r;
        EXPECT_DOUBLE_EQ(got(OpKind::reduce_scatter), expected.reduce_scatter)
            << text << " rank " << r;
        EXPECT_DOUBLE_EQ(got(OpKind::send_receive), expected.send_receive) << text << " rank " << r;
      }
    }
  }
}

constexpr double norm = 4.0;  // the all-reduce of the gradient norm: one fp32

// Shoeybi et al. 2019 (arXiv 1909.08053), section 3: two all-reduces of the activation b s h a
// layer in each direction, one for the embedding forward and one for the output layer's input
// backward; the loss all-reduces three fp32 a token. Full recompute repeats a layer's forward ones.
TEST(TensorParallel, AllReducesFourActivationsALayer) {
  const auto model = load_model("tiny-llama");
  const double l = 4, b = 2, s = 64, h = 64, m = 3, whole = sixteen_bits * b * s * h;
  const double tables = whole + whole + 3 * 4 * b * s;
  expect_bytes(model, "tp=2 mb=2 gbs=6", 64, {{norm + m * (l * 4 * whole + tables)}});
  expect_bytes(model, "tp=8 mb=2 gbs=6", 64, {{norm + m * (l * 4 * whole + tables)}});
  expect_bytes(
      model, "tp=2 mb=2 gbs=6 recompute=full", 64, {{norm + m * (l * 6 * whole + tables)}});
  expect_bytes(
      model, "tp=2 mb=2 gbs=6 recompute=selective", 64, {{norm + m * (l * 4 * whole + tables)}});
  // By stages: the embedding's on the first, the output's and the loss's on the last.
  const double sends = m * whole;
  expect_bytes(model,
               "tp=2 pp=2 mb=2 gbs=6 layers=3/1",
               64,
               {{norm + m * (3 * 4 * whole + whole), 0, 0, sends},
                {norm + m * (4 * whole + whole + 12 * b * s), 0, 0, sends}});
}

// Korthikanti et al. 2022 (arXiv 2205.05198), section 4.2.2: an all-gather before and a
// reduce-scatter after attention and MLP forward, the reverse backward: 4 of each a layer. The
// input is kept divided, so that backward gathers it once more for the weight gradient: 2 more
// all-gathers. The embedding's output is scattered and its gradient gathered, the output layer's
// input gathered, gathered again, and its gradient scattered.
TEST(SequenceParallel, GathersAndScattersInTheirPlace) {
  const auto model = load_model("tiny-llama");
  const double l = 4, b = 2, s = 64, h = 64, m = 3, whole = sixteen_bits * b * s * h;
  const double loss = norm + m * 3 * 4 * b * s;
  expect_bytes(model,
               "tp=2 sp mb=2 gbs=6",
               64,
               {{loss, m * (l * (4 + 2) + 1 + 2) * whole, m * (l * 4 + 1 + 1) * whole}});
  // Full recompute repeats 2 of each.
  expect_bytes(model,
               "tp=2 sp mb=2 gbs=6 recompute=full",
               64,
               {{loss, m * (l * (6 + 2) + 1 + 2) * whole, m * (l * 6 + 1 + 1) * whole}});
  // Sequence parallel at tp=1 is nothing.
  expect_bytes(model, "sp mb=2 gbs=6", 64, {{norm}});
}

// The volume is that of the all-reduces, each of which is a reduce-scatter and an all-gather, but
// for the re-gathered inputs (same section).
TEST(SequenceParallel, MovesWhatTensorParallelMovesAndTheInputsOnceMore) {
  const auto model = load_model("gpt3-22b");
  const auto plan = plans::plan("tp=8 gbs=1"), with_sp = plans::plan("tp=8 sp gbs=1");
  const auto without = lower(plans::step(model, plan, 2048), plans::table(plan), Grain::op);
  const auto with = lower(plans::step(model, with_sp, 2048), plans::table(with_sp), Grain::op);
  const double whole = sixteen_bits * 2048 * 6144, inputs = (48 * 2 + 1) * whole;
  // Bytes as an all-reduce counts them, twice for its two halves; the loss's and the norm's are
  // both's.
  const double by_all_reduce =
      without.bytes(0, OpKind::all_reduce).value - with.bytes(0, OpKind::all_reduce).value;
  EXPECT_DOUBLE_EQ(
      with.bytes(0, OpKind::all_gather).value + with.bytes(0, OpKind::reduce_scatter).value,
      2 * by_all_reduce + inputs);
}

// --- data-parallel bytes -------------------------------------------------------------------------

// Parameters of tiny-llama: a table 256 h, a layer's 2 h^2 + 2 h 16 + 3 h 192 and two norms, a last
// norm and an output table.
constexpr double table = 256 * 64, layer = 2 * 64 * 64 + 2 * 64 * 16 + 3 * 64 * 192 + 2 * 64,
                 last = 64 + table;

// Rajbhandari et al. 2020 (arXiv 1910.02054), section 7: without sharding and with stage 1 all
// gradients are reduced once a step, and stages 1 and 2 gather the updated parameters once; stage 2
// as our plans run it reduces each micro-batch; stage 3 gathers twice and reduces once a
// micro-batch.
TEST(DataParallel, MovesGradientsAndParametersAsZeroSays) {
  const auto model = load_model("tiny-llama");
  const double m = 3, whole = table + 4 * layer + last;
  const double fp32 = 4, bf16 = 2;  // gradients travel in fp32, parameters in bf16 (recipe bf16)
  EXPECT_DOUBLE_EQ(whole, static_cast<double>(count_parameters(model).total));
  for (const std::string overlap : {"both", "none"}) {
    const auto text = [&](int zero) {
      return "dp=4 gbs=12 overlap=" + overlap + " zero=" + std::to_string(zero);
    };
    expect_bytes(model, text(0), 64, {{norm + fp32 * whole}});
    expect_bytes(model, text(1), 64, {{norm, bf16 * whole, fp32 * whole}});
    expect_bytes(model, text(2), 64, {{norm, bf16 * whole, m * fp32 * whole}});
    expect_bytes(model, text(3), 64, {{norm, m * 2 * bf16 * whole, m * fp32 * whole}});
  }
}

TEST(DataParallel, MovesEachStagesOwnParameters) {
  const auto model = load_model("tiny-llama");
  const double m = 4, b = 1, sends = m * sixteen_bits * b * 64 * 64;
  const double first = table + 3 * layer, second = layer + last;
  expect_bytes(model,
               "pp=2 dp=2 gbs=8 zero=1 layers=3/1",
               64,
               {{norm, 2 * first, 4 * first, sends}, {norm, 2 * second, 4 * second, sends}});
  // Interleaved: 3 boundaries, of which each rank sends over 2 forward and 1 back, or 1 and 2.
  const double one = table + 2 * layer, other = 2 * layer + last;
  expect_bytes(model,
               "pp=2x2 dp=2 gbs=8 zero=3",
               64,
               {{norm, m * 4 * one, m * 4 * one, 3 * sends},
                {norm, m * 4 * other, m * 4 * other, 3 * sends}});
}

// A tied table on two stages: the copies' gradients are summed between the first and the last.
TEST(DataParallel, SumsTheGradientsOfATiedTable) {
  const auto model = load_model("tiny-gpt");
  const double m = 2, sends = m * sixteen_bits * 64 * 64, tied = 4 * 256 * 64;
  expect_bytes(model, "pp=2 gbs=2", 64, {{norm + tied, 0, 0, sends}, {norm + tied, 0, 0, sends}});
  expect_bytes(model, "pp=1 gbs=2", 64, {{norm}});
}

// --- pipeline bytes ------------------------------------------------------------------------------

// An activation b s h crosses each boundary once a micro-batch in each direction; with sequence
// parallel each tensor-parallel rank sends its part.
TEST(Pipeline, SendsAnActivationOverEachBoundary) {
  const auto model = load_model("llama-3.1-8b");
  const double m = 8, activation = sixteen_bits * 2 * 4096 * 4096;
  const auto sent = [&](const std::string& text) {
    const auto plan = plans::plan(text);
    const auto work = plans::step(model, plan, 4096);
    std::vector<double> bytes;
    for (const auto& graph : graphs(work, plan)) {
      double sum = 0.0;
      for (std::int32_t r = 0; r < graph.ranks; ++r)
        sum += graph.bytes(r, OpKind::send_receive).value;
      bytes.push_back(sum);
    }
    EXPECT_EQ(bytes, std::vector<double>(3, bytes[0]));
    return bytes[0];
  };
  EXPECT_DOUBLE_EQ(sent("pp=4 mb=2 gbs=16"), m * 2 * (4 - 1) * activation);
  EXPECT_DOUBLE_EQ(sent("pp=4x4 mb=2 gbs=16"), m * 2 * (4 * 4 - 1) * activation);
  EXPECT_DOUBLE_EQ(sent("tp=2 pp=4 mb=2 gbs=16"), m * 2 * (4 - 1) * activation);
  EXPECT_DOUBLE_EQ(sent("tp=2 sp pp=4 mb=2 gbs=16"), m * 2 * (4 - 1) * activation / 2);
  EXPECT_DOUBLE_EQ(sent("pp=4 mb=2 gbs=16 schedule=gpipe"), m * 2 * (4 - 1) * activation);
}

}  // namespace
}  // namespace core

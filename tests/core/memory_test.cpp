// Memory of weights, gradients, optimizer states and activations against the arithmetic of their
// papers and of the field cases (F1 to F13).
#include "core/graph/memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/lower.h"
#include "core/graph/step_work.h"
#include "tests/core/plans.h"

namespace core {
namespace {

constexpr double GB = 1e9, GiB = 1073741824.0, MiB = 1048576.0;

// --- activations (Korthikanti et al. 2022, arXiv 2205.05198)
// ---------------------------------------

ModelBodies bodies(const ModelSpec& model,
                   const std::string& text,
                   std::int64_t seq,
                   AttentionKernel attention) {
  static const Recipe recipe = load_recipe("fp16");
  static const Framework framework = load_framework("megatron", "hopper");
  return bodies_of(model,
                   body_context(plans::plan(text), recipe, framework, model, seq, attention));
}

double saved(const Body& body) {
  double sum = 0.0;
  for (const auto& tensor : body.saved) sum += tensor.bytes.value;
  return sum;
}

// Saved bytes of a layer of a plan.
double layer(const ModelSpec& model,
             const std::string& text,
             std::int64_t seq,
             AttentionKernel attention = AttentionKernel::unfused) {
  return saved(with_recompute(bodies(model, text, seq, attention).kinds.front(),
                              plans::plan(text).recompute,
                              core::modules::core_attention));
}

// The models of table 3 of the paper: heads, hidden size, layers; sequence 2048, vocabulary 51,200.
struct Gpt {
  std::string name;
  double a, h, L;
};
const std::vector<Gpt>& gpts() {
  static const std::vector<Gpt> all = {{"gpt3-22b", 64, 6144, 48},
                                       {"gpt3-175b", 96, 12288, 96},
                                       {"gpt3-530b", 128, 20480, 105},
                                       {"gpt3-1t", 160, 25600, 128}};
  return all;
}

// Table 2, and equations 1, 2, 4 and 6, for all its models, micro-batches and degrees.
TEST(Activations, OfALayerAreTableTwo) {
  const double s = 2048;
  for (const auto& [name, a, h, L] : gpts()) {
    const auto model = load_model(name);
    for (const double b : {1.0, 4.0}) {
      for (const double t : {2.0, 8.0}) {
        const double sbh = s * b * h, scores = 5 * a * s / h;
        const std::string mb = " mb=" + std::to_string(static_cast<int>(b)),
                          tp = "tp=" + std::to_string(static_cast<int>(t));
        EXPECT_DOUBLE_EQ(layer(model, mb, 2048), sbh * (34 + scores)) << name;  // eq. 1
        EXPECT_DOUBLE_EQ(layer(model, tp + mb, 2048), sbh * (10 + 24 / t + scores / t))
            << name;  // eq. 2
        EXPECT_DOUBLE_EQ(layer(model, tp + " sp" + mb, 2048), sbh / t * (34 + scores))
            << name;  // eq. 4
        EXPECT_DOUBLE_EQ(layer(model, tp + mb + " recompute=selective", 2048), sbh * (10 + 24 / t))
            << name;
        EXPECT_DOUBLE_EQ(layer(model, tp + " sp" + mb + " recompute=selective", 2048), 34 * sbh / t)
            << name;  // eq. 6
        EXPECT_DOUBLE_EQ(layer(model, tp + mb + " recompute=full", 2048), 2 * sbh) << name;
        // Where the layers' inputs are divided they are kept so, and gathered once more (section 5).
        EXPECT_DOUBLE_EQ(layer(model, tp + " sp" + mb + " recompute=full", 2048), 2 * sbh / t)
            << name;
      }
    }
  }
}

// Section 5: the terms of the softmax are 5 a s / h = 80 for GPT-3 and 64 for MT-NLG against 34, so
// that selective recompute saves 70 % and 65 % of a layer's activations; section 6.1: sequence
// parallel and selective recompute together leave under a fifth of what tensor parallel at t = 8
// keeps, full recompute about a tenth.
TEST(Activations, RatiosArePublishedOnes) {
  const auto ratio = [](const std::string& name, const std::string& some, const std::string& of) {
    const auto model = load_model(name);
    return layer(model, some, 2048) / layer(model, of, 2048);
  };
  EXPECT_NEAR(
      1 - ratio("gpt3-175b", "tp=8 sp recompute=selective", "tp=8 sp"), 80.0 / (34 + 80), 1e-12);
  EXPECT_NEAR(1 - ratio("gpt3-175b", "tp=8 sp recompute=selective", "tp=8 sp"), 0.70, 0.005);
  EXPECT_NEAR(1 - ratio("gpt3-530b", "tp=8 sp recompute=selective", "tp=8 sp"), 0.65, 0.005);
  for (const auto& gpt : gpts()) {
    EXPECT_LT(ratio(gpt.name, "tp=8 sp recompute=selective", "tp=8"), 0.205) << gpt.name;
    EXPECT_LT(ratio(gpt.name, "tp=8 recompute=full", "tp=8"), 0.10) << gpt.name;
    // Each of the two alone leaves about half to three quarters.
    EXPECT_NEAR(ratio(gpt.name, "tp=8 sp", "tp=8"), 0.6, 0.1) << gpt.name;
    EXPECT_NEAR(ratio(gpt.name, "tp=8 recompute=selective", "tp=8"), 0.55, 0.1) << gpt.name;
  }
}

// Section 4.3: the embedding's dropout keeps a mask of sbh / t a micro-batch; the last norm and the
// output layer keep their inputs, 2 + 2 sbh / t, and the logits in fp32, 4 s b v / t.
TEST(Activations, OfTheTablesAreSectionFourThree) {
  const double s = 2048, b = 2, h = 6144, v = 51200, t = 8;
  const auto model = load_model("gpt3-22b");
  const auto of = bodies(model, "tp=8 sp mb=2", 2048, AttentionKernel::unfused);
  EXPECT_EQ(saved(of.embedding), s * b * h / t);
  EXPECT_EQ(saved(of.output), 4 * s * b * h / t * (1 + v / h));
}

// Equation 5 and section 4.2.3 together: the first of p stages holds p micro-batches of L / p
// layers, that is L layers, with interleaving 1 + (p - 1) / (p m) times as many.
TEST(Activations, OfTheFirstStageAreAllLayersOnce) {
  const auto model = load_model("gpt3-175b");
  const double s = 2048, h = 12288, L = 96, t = 8, p = 8, a = 96;
  const auto short_lived = [&](const std::string& text) {
    const auto plan = plans::plan(text);
    const auto work = plans::step(model, plan, 2048, AttentionKernel::unfused, "fp16");
    const auto graph = lower(work, plans::table(plan), Grain::cell);
    // What is saved and not freed, whatever the times: by the order of the first rank's program.
    std::vector<std::int64_t> change(graph.size() + 1, 0);
    for (const auto& tensor : graph.tensors) {
      if (tensor.rank != 0 || tensor.first == tensor.last) continue;  // one operation's own
      change[tensor.first] += tensor.bytes;
      change[tensor.last] -= tensor.bytes;
    }
    std::int64_t now = 0, most = 0;
    for (const auto c : change) most = std::max(most, now += c);
    return static_cast<double>(most);
  };
  const double a_layer = s * h / t * (34 + 5 * a * s / h), mask = s * h / t;
  EXPECT_EQ(short_lived("tp=8 sp pp=8 gbs=32"), L * a_layer + p * mask);
  // 2 virtual stages of 6 layers: p v + p - 1 = 23 chunks. Both groups of p micro-batches have
  // entered the first chunk when the first one's second chunk has come back once: 2 p masks.
  const double chunks = p * 2 + p - 1;
  EXPECT_EQ(short_lived("tp=8 sp pp=8x2 gbs=32"), chunks * L / (p * 2) * a_layer + 2 * p * mask);
  EXPECT_NEAR(chunks / (p * 2), 1 + (p - 1) / (p * 2), 1e-15);
}

// FlashAttention (arXiv 2205.14135) keeps one fp32 a row and head instead of all that grows with
// the square of the sequence (field case F2).
TEST(Activations, OfFlashAttentionGrowWithTheSequence) {
  const double s = 2048, b = 2, h = 6144, a = 64;
  const auto model = load_model("gpt3-22b");
  const auto flash = AttentionKernel::flash2;
  EXPECT_EQ(layer(model, "mb=2", 2048, flash), s * b * h * 34 + 4 * a * s * b);
  EXPECT_EQ(layer(model, "mb=2", 4096, flash), 2 * layer(model, "mb=2", 2048, flash));
  EXPECT_EQ(layer(model, "mb=2", 4096), 2 * s * b * h * (34 + 5 * a * 2 * s / h));
}

// Grouped queries, SwiGLU, RMSNorm, no dropout, 16 bits: two norm inputs, the inputs of both linear
// regions, q and the fewer k and v, the attention's output, gate, up and product.
TEST(Activations, OfUlyssesHaveAttentionsOutputTwice) {
  const auto model = load_model("llama-3.1-8b");
  const auto of = [&](const std::string& plan) { return layer(model, plan, 8192, AttentionKernel::flash2); };
  EXPECT_EQ(of("cp=4:ulysses") - of("cp=4:ring"), 2.0 * 8192 / 4 * 4096);
}

// Of the last block of a layer nothing else is gone yet: the gradients of gate and up and of their product beside what is
// saved, less the saved product, and the gradient of the residual stream: 4 F + 2 h. Attention's are less than what that block
// freed. W of a split backward keeps the product and the block's input. Sequence parallel divides the former.
TEST(Activations, OfALayersBackwardAreThoseOfItsLastBlock) {
  const auto model = load_model("llama-3.1-8b");
  const double t = 4096, h = 4096, F = 14336;
  const auto of = [&](const std::string& plan) { return bodies(model, plan, 4096, AttentionKernel::flash2).kinds.front(); };
  EXPECT_EQ(of("").backward_transient.value, t * (4 * F + 2 * h));
  EXPECT_EQ(of("").input_transient.value, t * (4 * F + 2 * h + 2 * F + 2 * h));
  EXPECT_EQ(of("tp=2 sp").backward_transient.value, t * (4 * F + 2 * h) / 2);
  // At tp=8 it is the gathered input beside its gradient, when the activation's inputs have given way to their gradients.
  EXPECT_EQ(of("tp=8 sp").backward_transient.value, t * (4 * h - 2 * F / 8 + 2 * h / 8));
}

// Full recompute keeps a layer's input, 2 s b h, on each tensor-parallel rank, unless a run divides it over them.
TEST(Activations, OfFullRecomputeAreDividedWhereARunAsks) {
  const auto model = load_model("gpt3-22b");
  auto framework = load_framework("megatron", "hopper");
  const double whole = 2.0 * 2048 * 6144;
  for (const bool divides : {false, true}) {
    framework.divides_checkpoints = divides;
    const auto plan = plans::plan("tp=8 recompute=full");
    const auto work = step_work(model, plan, load_recipe("fp16"), framework, 2048, AttentionKernel::unfused);
    EXPECT_EQ(saved(work.bodies[work.stages[0].bodies[1]]), divides ? whole / 8 : whole);
    EXPECT_EQ(work.send_bytes, whole);
  }
}

// Layers alike: a layer of the one is beside what is left of the other, and what is short-lived of both. Longer or shorter,
// what is left over adds up.
TEST(Activations, OfAPairTakeEachOthersPlace) {
  BodyMemory layer, small;
  layer.activations = 100, layer.logits = 10, layer.forward_transient = 7, layer.backward_transient = 30;
  small.activations = 1, small.backward_transient = 2;
  const std::vector<const BodyMemory*> three(3, &layer), one(1, &small);
  EXPECT_EQ(pair_peak(three, three), 110 + 7 + 30);
  EXPECT_EQ(pair_peak(three, one), 3 * 110 - 1 + 7);
  EXPECT_EQ(pair_peak(one, three), 1 + 30);
  EXPECT_EQ(pair_peak({}, three), 30);
}

TEST(Activations, OfALlamaLayer) {
  const double s = 4096, b = 2, h = 4096, kv = 1024, F = 14336, a = 32, t = 4;
  const auto model = load_model("llama-3.1-8b");
  const double q_k_v = 2 * (h + 2 * kv), mlp = 2 * 3 * F, rows = 4 * a;
  EXPECT_EQ(layer(model, "mb=2", 4096, AttentionKernel::flash2),
            s * b * (2 * 2 * h + 2 * 2 * h + q_k_v + 2 * h + mlp + rows));
  EXPECT_EQ(layer(model, "tp=4 mb=2", 4096, AttentionKernel::flash2),
            s * b * (2 * 2 * h + 2 * 2 * h + (q_k_v + 2 * h + mlp + rows) / t));
  EXPECT_EQ(layer(model, "tp=4 sp mb=2", 4096, AttentionKernel::flash2),
            s * b / t * (2 * 2 * h + 2 * 2 * h + q_k_v + 2 * h + mlp + rows));
}

// --- states (Rajbhandari et al. 2020, arXiv 1910.02054, section 3; figure 1)
// -----------------------

double bytes(const MemoryTerms& terms, std::initializer_list<MemoryTerm> which) {
  double sum = 0.0;
  for (const auto term : which) sum += static_cast<double>(terms[index_of(term)]);
  return sum;
}

double states(double parameters, const std::string& text, const std::string& recipe) {
  RankParameters p;
  p.all.dense = p.gemm.dense = parameters;
  return bytes(
      resident_memory(p, plans::plan(text), load_recipe(recipe), load_framework("megatron", "hopper")),
      {MemoryTerm::weights, MemoryTerm::gradients, MemoryTerm::optimizer});
}

// Each term is rounded up to 512 bytes.
constexpr double rounding = 3 * 512;

TEST(States, AreZerosBytesAParameter) {
  const double P = 1e9;
  for (const double n : {2.0, 8.0, 64.0}) {
    const std::string dp = "dp=" + std::to_string(static_cast<int>(n));
    const auto of = [&](int stage, const std::string& recipe) {
      return states(P, dp + " zero=" + std::to_string(stage), recipe);
    };
    EXPECT_NEAR(of(0, "fp16"), 16 * P, rounding);
    EXPECT_NEAR(of(1, "fp16"), (4 + 12 / n) * P, rounding);
    EXPECT_NEAR(of(2, "fp16"), (2 + 14 / n) * P, rounding);
    EXPECT_NEAR(of(3, "fp16"), 16 / n * P, rounding);
    // fp32 gradients: field case F1.
    EXPECT_NEAR(of(0, "bf16"), 18 * P, rounding);
    EXPECT_NEAR(of(1, "bf16"), (6 + 12 / n) * P, rounding);
    EXPECT_NEAR(of(2, "bf16"), (2 + 16 / n) * P, rounding);
    EXPECT_NEAR(of(3, "bf16"), 18 / n * P, rounding);
    // bf16 gradients: field case F2.
    EXPECT_NEAR(of(0, "bf16-grad16"), 16 * P, rounding);
    EXPECT_NEAR(of(1, "bf16-grad16"), (4 + 12 / n) * P, rounding);
  }
  // F1: 7.5 bytes at 8 ranks; at one the flag saves nothing.
  EXPECT_NEAR(states(P, "dp=8 zero=1", "bf16"), 7.5 * P, rounding);
  EXPECT_EQ(states(P, "dp=1 zero=1", "bf16"), states(P, "dp=1 zero=0", "bf16"));
}

// Figure 1 of the paper: 7.5 billion parameters on 64 GPUs.
TEST(States, AreFigureOne) {
  const double P = 7.5e9;
  const double published[] = {120, 31.4, 16.6, 1.88};  // GB
  for (int stage = 0; stage <= 3; ++stage) {
    EXPECT_NEAR(
        states(P, "dp=64 zero=" + std::to_string(stage), "fp16") / GB, published[stage], 0.05)
        << stage;
  }
}

// Field case F5: 2.35 billion parameters at 16 bytes are 37.6 GB, which is 35.0 GiB.
TEST(States, AreCountedInUnitsThatDiffer) {
  EXPECT_NEAR(states(2.35e9, "", "fp16") / GB, 37.6, 0.05);
  EXPECT_NEAR(states(2.35e9, "", "fp16") / GiB, 35.0, 0.05);
}

// fp8 keeps the bf16 weights and adds two copies of one byte of each GEMM weight.
TEST(States, DoNotShrinkWithFp8) { EXPECT_NEAR(states(1e9, "", "fp8"), (18 + 2) * 1e9, rounding); }

MemoryTerms resident(const ModelSpec& model,
                     const std::string& text,
                     std::int64_t rank,
                     std::int64_t seq,
                     const std::string& recipe = "bf16") {
  const auto plan = plans::plan(text);
  const auto work = plans::step(model, plan, seq, AttentionKernel::flash2, recipe);
  return resident_memory(rank_parameters(work, rank), plan, work.recipe, work.framework);
}
double states_of(const MemoryTerms& terms) {
  return bytes(terms, {MemoryTerm::weights, MemoryTerm::gradients, MemoryTerm::optimizer});
}

// Field case F3: 7.5 x 8.0305e9 bytes.
TEST(States, OfLlama8bOnEightGpus) {
  const auto terms = resident(load_model("llama-3.1-8b"), "dp=8 zero=1 gbs=8", 0, 8192);
  EXPECT_NEAR(states_of(terms) / MiB, 57439, 0.005 * 57439);
  EXPECT_NEAR(states_of(terms), 7.5 * 8030261248.0, rounding);
}

// Field case F2: norms are whole on each tensor-parallel rank, and the final norm is on the last
// stage only. Per layer on 2 of tensor parallel: half of the weights and both norms whole.
TEST(States, CountNormsWholeAndTheFinalOneOnce) {
  const auto model = load_model("tiny-llama");
  const double h = 64, weights = 2 * h * h + 2 * h * 16 + 3 * h * 192, table = 256 * h;
  const auto parameters = [&](const std::string& text, std::int64_t rank) {
    return rank_parameters(plans::step(model, plans::plan(text), 64), rank).all.dense;
  };
  EXPECT_EQ(parameters("tp=2 pp=2 gbs=2", 0), table / 2 + 2 * (weights / 2 + 2 * h));
  EXPECT_EQ(parameters("tp=2 pp=2 gbs=2", 1), 2 * (weights / 2 + 2 * h) + h + table / 2);
  // 8 ranks share 2 key-value heads: each holds one of them whole, half of k and v.
  EXPECT_EQ(parameters("tp=8", 0),
            (2 * h * h + 3 * h * 192) / 8 + 2 * h * 16 / 2 + 2 * h + 0 +
                3 * ((2 * h * h + 3 * h * 192) / 8 + 2 * h * 16 / 2 + 2 * h) + h +
                2 * 1024 / 8 * h);  // tables padded from 256 to 128 x 8 rows
}

// Field case F9: 8 equal layers as 1, 2, 2, 3 with tables at the ends: each stage has its own need,
// the last the most; the average is another number.
TEST(States, AreThoseOfEachStage) {
  const auto model = [] {
    auto m = load_model("tiny-llama");
    m.layer_kind.assign(8, 0);
    return m;
  }();
  const double h = 64, layer_size = 2 * h * h + 2 * h * 16 + 3 * h * 192 + 2 * h, table = 256 * h;
  const std::vector<double> expected = {
      table + layer_size, 2 * layer_size, 2 * layer_size, 3 * layer_size + h + table};
  double sum = 0.0;
  for (std::int64_t r = 0; r < 4; ++r) {
    const double got = states_of(resident(model, "pp=4 gbs=4 layers=1/2/2/3", r, 64));
    EXPECT_NEAR(got, 18 * expected[static_cast<std::size_t>(r)], rounding);
    sum += got;
  }
  EXPECT_GT(states_of(resident(model, "pp=4 gbs=4 layers=1/2/2/3", 3, 64)), 1.4 * sum / 4);
}

// Field case F13: the estimator counts 18 bytes a parameter over 4 GPUs and 4 of the largest layer,
// gathered: 29.0 GiB. What trains needs more: the next body gathered ahead, a body's gradients
// whole, workspaces, communicators and context, each on its line.
TEST(States, OfZeroThreeAndWhatTheEstimatorLeavesOut) {
  RankParameters p;
  p.all.dense = p.gemm.dense = 6805e6;
  p.largest_body = 131e6;
  const auto plan = plans::plan("dp=4 zero=3 gbs=4");
  const auto terms = resident_memory(p, plan, load_recipe("bf16"), load_framework("fsdp", "hopper"));
  EXPECT_NEAR((states_of(terms) + 4 * p.largest_body) / GiB, 29.0, 0.29);
  EXPECT_NEAR(states_of(terms), 18 * p.all.dense / 4, rounding);
  const auto framework = load_framework("fsdp", "hopper");
  EXPECT_NEAR(bytes(terms, {MemoryTerm::buffers}),
              framework.workspaces.all(false).value + (2 * 2 + 2 + 4) * p.largest_body,
              512);
  EXPECT_NEAR(bytes(terms, {MemoryTerm::context}), framework.context.value, 512);
  EXPECT_NEAR(bytes(terms, {MemoryTerm::communicators}),
              2 * framework.communicator.value,
              512);  // world and data
  // Training needs more than what the estimator prints, even with the states elsewhere.
  EXPECT_GT(bytes(terms, {MemoryTerm::buffers, MemoryTerm::context, MemoryTerm::communicators}),
            2.5 * GB);
}

// Transformer Engine keeps a tensor of the weights' format for each shape of GEMM weight whose gradient the GEMM itself adds to
// the main gradients, Megatron-LM for the output layer's too; grouped GEMMs have four workspaces more. Experts are alike, so
// that one stands for all; fully sharded frameworks have none of it.
TEST(States, HavePlaceholdersOfTheGradientsThatGemmsAdd) {
  const auto workspaces = load_framework("megatron", "hopper").workspaces;
  const double workspace = workspaces.all(false).value;
  const double h = 4096, kv = 1024, F = 14336, V = 128256, layer_size = 2 * h * h + 2 * h * kv + 3 * h * F;
  const auto buffers = [](const ModelSpec& model, const std::string& text, std::int64_t rank) {
    return bytes(resident(model, text, rank, 4096), {MemoryTerm::buffers});
  };
  const auto llama = load_model("llama-3.1-8b");
  EXPECT_NEAR(buffers(llama, "", 0), workspace + 2 * (layer_size + V * h), 512);
  EXPECT_NEAR(buffers(llama, "tp=2 pp=2 gbs=2", 0), workspace + 2 * layer_size / 2, 512);
  EXPECT_NEAR(buffers(llama, "tp=2 pp=2 gbs=2", 1), workspace + 2 * (layer_size + V * h) / 2, 512);
  // A tied output layer multiplies the embedding's table.
  const auto tied = load_model("llama-3.2-1b");
  EXPECT_NEAR(buffers(tied, "", 0),
              workspace + 2 * (2.0 * 2048 * 2048 + 2.0 * 2048 * 512 + 3.0 * 2048 * 8192 + V * 2048), 512);
  // Mixtral 8x7B: a router of 8, and one expert of the two on a rank.
  const double sparse = 2 * h * h + 2 * h * kv + 8 * h + 3 * h * F;
  EXPECT_NEAR(buffers(load_model("mixtral-8x7b"), "dp=4 ep=4 gbs=4", 0),
              workspaces.all(true).value + 2 * (sparse + 32000 * h), 512);
}

// The output layer's gathered input, [b, s, h] in 16 bits, stays on the rank that has the layer.
TEST(States, HaveTheOutputLayersGatheredInput) {
  const auto model = load_model("llama-3.1-8b");
  const auto buffers = [&](const std::string& text, std::int64_t rank) {
    return bytes(resident(model, text, rank, 4096), {MemoryTerm::buffers});
  };
  EXPECT_NEAR(buffers("tp=2 sp pp=2 gbs=2", 0) - buffers("tp=2 pp=2 gbs=2", 0), 0.0, 512);
  EXPECT_NEAR(buffers("tp=2 sp pp=2 gbs=2", 1) - buffers("tp=2 pp=2 gbs=2", 1), 2.0 * 4096 * 4096, 512);
}

// Of micro-batches whose weight gradient waits, the output layer's input and the 16-bit gradient of its logits: as many as are
// deferred, but for the last micro-batch of the step.
TEST(States, HaveOperandsOfDeferredOutputGradients) {
  const auto model = load_model("llama-3.1-8b");
  auto framework = load_framework("megatron", "hopper");
  const auto buffers = [&](std::int64_t deferred, const std::string& text) {
    framework.deferred_output_gradients = deferred;
    const auto plan = plans::plan(text);
    const auto work = step_work(model, plan, load_recipe("bf16"), framework, 4096, AttentionKernel::flash2);
    return bytes(resident_memory(rank_parameters(work, plan.pp - 1), plan, work.recipe, framework), {MemoryTerm::buffers});
  };
  const double operands = 2.0 * 4096 * (4096 + 128256 / 2);
  for (const auto& [limit, batch, kept] : {std::tuple{2, 8, 2}, {2, 2, 1}, {2, 1, 0}, {5, 8, 5}}) {
    const auto text = "tp=2 pp=2 gbs=" + std::to_string(batch);
    EXPECT_NEAR(buffers(limit, text) - buffers(0, text), kept * operands, 512) << text;
  }
}

// DeepSpeed's ZeRO 1 and 2 copy a rank's share of 16-bit gradients into one fp32 tensor, 4 bytes a parameter over its ranks;
// fp32 gradients need none, Megatron-LM makes none.
TEST(States, HaveTheFlatCopyOfNarrowGradients) {
  RankParameters p;
  p.all.dense = p.gemm.dense = 1e9;
  const auto buffers = [&](const char* framework, const char* recipe, const std::string& plan) {
    return bytes(resident_memory(p, plans::plan(plan), load_recipe(recipe), load_framework(framework, "hopper")), {MemoryTerm::buffers});
  };
  const auto flat = [&](const char* framework, const char* recipe, const std::string& zero, std::int64_t dp) {
    const auto text = "dp=" + std::to_string(dp) + " gbs=" + std::to_string(dp) + " zero=";
    return buffers(framework, recipe, text + zero) - buffers(framework, recipe, text + "0");
  };
  EXPECT_NEAR(flat("megatron-deepspeed", "fp16", "1", 1), 4e9, 512);
  EXPECT_NEAR(flat("megatron-deepspeed", "fp16", "1", 4), 1e9, 512);
  EXPECT_NEAR(flat("megatron-deepspeed", "bf16", "1", 1), 0.0, 512);
  EXPECT_NEAR(flat("megatron", "fp16", "1", 1), 0.0, 512);
}

// Field case F42: communicators cost by their number; not by that of nodes.
TEST(States, CountACommunicatorForEachKindOfGroup) {
  const auto of = [](const std::string& text) {
    return bytes(
        resident_memory({}, plans::plan(text), load_recipe("bf16"), load_framework("megatron", "hopper")),
        {MemoryTerm::communicators});
  };
  const double one = of("dp=8") / 2;  // world and data
  EXPECT_EQ(of(""), 0);
  EXPECT_NEAR(of("tp=2 dp=2 gbs=2"), 3 * one, 512);
  EXPECT_NEAR(of("tp=2 pp=2 dp=2 gbs=2"), 4 * one, 512);
  EXPECT_EQ(of("tp=2 pp=2 dp=2 gbs=2"), of("tp=8 pp=8 dp=64 gbs=64"));
  EXPECT_GT(of("tp=2 pp=2 dp=2 gbs=2"), 0.5 * GB);
  EXPECT_LT(of("tp=2 pp=2 dp=2 gbs=2"), 8 * GB);
}

// --- logits --------------------------------------------------------------------------------------

// Field cases F6 and F25: one fp32 logits tensor of gpt2-large at 4 x 1024 tokens is 786 MiB with
// the vocabulary padded to 50,304; a vocabulary of 128,256 at 16,384 tokens takes 7.8 GiB, one of
// 32,000 2.0 GiB; tensor parallel divides them.
TEST(Logits, AreFourBytesEach) {
  const auto logits = [](const std::string& name, const std::string& text, std::int64_t seq) {
    const auto model = load_model(name);
    const auto output = bodies(model, text, seq, AttentionKernel::flash2).output;
    double sum = 0.0;
    for (const auto& tensor : output.saved)
      sum += tensor.name == "logits" ? tensor.bytes.value : 0.0;
    return sum;
  };
  EXPECT_EQ(logits("gpt2-large", "mb=4", 1024), 786 * MiB);
  EXPECT_NEAR(logits("llama-3.1-8b", "", 16384) / GiB, 7.8, 0.05);
  EXPECT_NEAR(logits("llama-2-7b", "", 16384) / GiB, 2.0, 0.05);
  EXPECT_EQ(logits("llama-3.1-8b", "", 16384), 4.0 * 16384 * 128256);
  EXPECT_EQ(logits("llama-3.1-8b", "tp=2", 16384), 4.0 * 16384 * 128256 / 2);
}

// Gradients of a run of micro-batches stay whole until they are reduced: those of one virtual stage at a time.
TEST(ResidentMemory, HoldsTheGradientsOfARunsStage) {
  RankParameters rank;
  rank.all.dense = rank.gemm.dense = 4e9, rank.largest_body = 1e8, rank.largest_stage = 1e9;
  const auto recipe = load_recipe("bf16");
  const auto bytes = [&](const std::string& plan) {
    const auto terms = resident_memory(rank, plans::plan(plan), recipe, load_framework("fsdp", "hopper"));
    return static_cast<double>(terms[index_of(MemoryTerm::buffers)]);
  };
  EXPECT_NEAR(bytes("dp=8 zero=2 gbs=8 reduce=runs") - bytes("dp=8 zero=2 gbs=8"), 4.0 * 1e9, 1024.0);
}

}  // namespace
}  // namespace core

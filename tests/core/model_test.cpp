#include "core/model/model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/io/data_dir.h"

namespace core {
namespace {

std::int64_t total(std::string_view name) { return count_parameters(load_model(name)).total; }

// Megatron's GPT: 12 h^2 + 13 h a layer, V + s rows of h in the tables, a last norm.
std::int64_t gpt_total(std::int64_t layers, std::int64_t h, std::int64_t vocab, std::int64_t s) {
  return layers * (12 * h * h + 13 * h) + (vocab + s) * h + 2 * h;
}

// Nemotron-4: q and out h^2 each, k and v h x 8 heads, an MLP of 2 x 4 h^2, two norms with bias a
// layer; two tables of h; a last norm.
std::int64_t nemotron_total(std::int64_t layers, std::int64_t h, std::int64_t head_dim) {
  return layers * (2 * h * h + 2 * h * 8 * head_dim + 8 * h * h + 4 * h) + 2 * 256000 * h + 2 * h;
}

// Attention of heads of 128: q and out, k and v.
std::int64_t grouped(std::int64_t h, std::int64_t heads, std::int64_t kv_heads) {
  return h * 128 * (2 * heads + 2 * kv_heads);
}

// Latent attention without biases, its two norms, and the two of the layer.
std::int64_t latent_layer(
    std::int64_t h, std::int64_t heads, std::int64_t q_rank, std::int64_t nope, std::int64_t v) {
  const std::int64_t kv_rank = 512, rope = 64;
  return h * q_rank + q_rank + q_rank * heads * (nope + rope) + h * (kv_rank + rope) + kv_rank +
         kv_rank * heads * (nope + v) + heads * v * h + 2 * h;
}

// Queries from the latent, one key with its LayerNorm, a weight a head.
std::int64_t indexer(std::int64_t h, std::int64_t q_rank, std::int64_t heads, std::int64_t dim) {
  return q_rank * heads * dim + h * dim + 2 * dim + h * heads;
}

// GLM-5: 3 dense and 75 sparse layers; 256 experts and a shared one of 2048, a bias an expert.
std::int64_t glm5_total() {
  const std::int64_t h = 6144;
  return 78 * (latent_layer(h, 64, 2048, 192, 256) + indexer(h, 2048, 32, 128)) +
         3 * 3 * h * 12288 + 75 * (h * 256 + 256 + 257 * 3 * h * 2048) + 2 * 154880 * h + h;
}

// Qwen3-Next: 36 layers of Gated DeltaNet (16 key and 32 value heads of 128, decay and step a value
// head, a convolution of 4 over 8192 channels, two vectors, a norm of 128), 12 of attention with a
// gate (16 heads of 256, 2 key heads, two norms); 512 experts and a gated shared one of 512.
std::int64_t qwen3_next_total() {
  const std::int64_t h = 2048;
  const std::int64_t linear = h * (2 * 2048 + 2 * 4096 + 2 * 32) + 8192 * 4 + 2 * 32 + 128 + 4096 * h;
  const std::int64_t attention = h * 256 * (3 * 16 + 2 * 2) + 2 * 256;
  return 36 * linear + 12 * attention + 48 * (2 * h + h * 512 + 513 * 3 * h * 512 + h) +
         2 * 151936 * h + h;
}

// Totals of the shipped models that data/models/parameters.csv does not have, as published or by formula.
const std::map<std::string, std::int64_t>& shipped_totals() {
  static const std::map<std::string, std::int64_t> totals = {
      // q and out h^2, k and v of 8 heads, three MLP weights, one norm a layer; a tied table, a
      // norm
      {"aya-23",
       32 * (2 * 4096L * 4096 + 2 * 4096 * 1024 + 3 * 4096L * 14336 + 4096) + 256001L * 4096},
      {"bloom", 176247271424},
      {"deepseek-v3.2", 671026419200 + 61 * indexer(7168, 1536, 64, 128)},
      {"bloom-560m", 559214592},
      {"falcon-40b", 41303293952},
      {"falcon-7b", 6921720704},
      // GPT-2 less 15 of 16 heads of keys and values, each with its bias
      {"glm-5", glm5_total()},
      // 16 experts and a shared one of 8192 in each layer, no biases
      {"llama-4-scout",
       48 * (grouped(5120, 40, 8) + 2 * 5120 + 5120 * 16 + 17 * 3 * 5120L * 8192) +
           2 * 202048L * 5120 + 5120},
      {"gpt-bigcode-1b", gpt_total(24, 2048, 49280, 2048) - 24 * 2 * 15 * 128 * (2048 + 1)},
      {"gpt2-large", 774030080},
      {"gpt2-xl", 1557611200},
      {"gpt3-175b", gpt_total(96, 12288, 51200, 2048)},
      {"gpt3-1t", gpt_total(128, 25600, 51200, 2048)},
      {"gpt3-22b", gpt_total(48, 6144, 51200, 2048)},
      {"gpt3-530b", gpt_total(105, 20480, 51200, 2048)},
      {"llama-2-13b", 13015864320},
      {"mistral-7b", 7241732096},
      // a projection, a convolution of 4 taps with its bias, three vectors, a norm over the inner width, an output
      // projection and a norm a layer; a tied table, a norm
      {"mamba2-2.7b",
       64 * (2560 * (2 * 5120 + 2 * 128 + 80L) + 5 * (5120 + 256) + 3 * 80 + 5120 + 5120 * 2560L + 2560) +
           50288 * 2560L + 2560},
      {"mpt-7b", 6649286656},
      {"nemotron-4-15b", nemotron_total(32, 6144, 128)},
      {"nemotron-4-340b", nemotron_total(96, 18432, 192)},
      {"olmo-7b", 6888095744},
      // as published (arXiv 2510.25741) but for the gate that ends its loops, h + 1
      {"ouro-2.6b", 2667974657 - 2049},
      {"phi-2", 2779683840},
      {"qwen3-next-80b-a3b", qwen3_next_total()},
      // no position table, an output layer of its own
      {"redpajama-3b", gpt_total(32, 2560, 50432, 0) + 50432 * 2560},
      {"starcoder2-3b", 3030371328},
      {"starcoder2-7b", 7173923840},
      {"tiny-gpt", gpt_total(4, 64, 256, 64)},
      // q and out 64 x 64, k and v 64 x 16, three MLP weights 64 x 192, two norms; two tables, a
      // norm
      {"tiny-llama", 4 * (2 * 64 * 64 + 2 * 64 * 16 + 3 * 64 * 192 + 2 * 64) + 2 * 256 * 64 + 64},
  };
  return totals;
}

// The first columns of a CSV line; only later ones are quoted.
std::vector<std::string> columns(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) {
    cells.push_back(cell);
  }
  return cells;
}

TEST(Model, ShippedModelsWarnOnlyOfWhatIsNotModelled) {
  for (const std::string& name : data_names("models")) {
    for (const std::string& warning : load_model(name).warnings) {
      const bool stated = warning.find("softcapping") != std::string::npos ||
                          warning == "text_config: read alone; the vision tower is left out";
      EXPECT_TRUE(stated) << name << ": " << warning;
    }
  }
}

struct Published {
  std::string model;
  std::int64_t total = 0, active = 0;
};

// Rows of data/models/parameters.csv.
std::vector<Published> published_counts() {
  std::ifstream csv(data_dir() / "models" / "parameters.csv");
  std::vector<Published> rows;
  std::string line;
  std::getline(csv, line);
  while (std::getline(csv, line)) {
    const std::vector<std::string> row = columns(line);
    rows.push_back({row.at(0), std::stoll(row.at(1)), std::stoll(row.at(2))});
  }
  return rows;
}

TEST(Model, CountsTheParametersOfEveryShippedModelExactly) {
  std::map<std::string, std::int64_t> totals = shipped_totals();
  for (const Published& row : published_counts()) totals[row.model] = row.total;
  for (const std::string& name : data_names("models")) {
    ASSERT_TRUE(totals.contains(name)) << name;
    EXPECT_EQ(total(name), totals.at(name)) << name;
  }
  EXPECT_EQ(data_names("models").size(), totals.size());
}

TEST(Model, CountsTotalAndActiveParametersAsPublished) {
  ASSERT_GE(published_counts().size(), 50U);
  for (const Published& row : published_counts()) {
    const ParameterCount count = count_parameters(load_model(row.model));
    EXPECT_EQ(count.total, row.total) << row.model;
    EXPECT_EQ(count.active, row.active) << row.model;
  }
}

// The configurations that our files were made from, where they lie beside the source tree.
TEST(Model, ReadsEveryCollectedConfigurationAsTheShippedFile) {
  const std::filesystem::path folder =
      std::filesystem::path(FORETRAIN_SOURCE_DIR) / ".." / "shared" / "inputs" / "hf" / "configs";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "no collection of published configurations beside the source tree";
  }
  const std::map<std::string, std::string> renamed = {{"starcoder2", "starcoder2-7b"}};
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().stem().string();
    const ModelSpec model = load_model(entry.path().string());
    const ModelSpec ours = load_model(renamed.contains(name) ? renamed.at(name) : name);
    // The collected RWKV-5 says that its tables are tied, against its paper.
    EXPECT_EQ(model.kinds, ours.kinds) << name;
    EXPECT_EQ(model.layer_kind, ours.layer_kind) << name;
    EXPECT_EQ(model.mtp, ours.mtp) << name;
    EXPECT_EQ(model.tied_embeddings, name == "rwkv5-3b" ? true : ours.tied_embeddings) << name;
    for (const std::string& warning : model.warnings) {
      EXPECT_EQ(warning.find("did you mean"), std::string::npos) << name << ": " << warning;
    }
    ++files;
  }
  EXPECT_EQ(files, 59);
}

TEST(Model, SplitsTheCountIntoTables) {
  const ParameterCount tied = count_parameters(load_model("tiny-gpt"));
  EXPECT_EQ(tied.active, tied.total);
  EXPECT_EQ(tied.embedding, (256 + 64) * 64);
  EXPECT_EQ(tied.output, 0);

  const ParameterCount untied = count_parameters(load_model("tiny-llama"));
  EXPECT_EQ(untied.embedding, 256 * 64);
  EXPECT_EQ(untied.output, 256 * 64);
}

// Narayanan et al. 2021 (arXiv 2104.04473), eq. 3, its forward quarter: 24 s h^2 (1 + s / 6h) a
// layer and sequence, and 2 h V a token for the logits.
TEST(Model, ForwardFlopsOfGptAreMegatronsClosedForm) {
  const ModelSpec model = load_model("gpt3-175b");
  const double h = 12288, layers = 96, vocab = 51200, s = 2048;
  const double a_layer = 24 * s * h * h * (1 + s / (6 * h));
  EXPECT_DOUBLE_EQ(flops_per_token_forward(model, 2048), layers * a_layer / s + 2 * h * vocab);
}

TEST(Model, ForwardFlopsCountGroupedQueriesGatesAndWindows) {
  const double gemms = 2.0 * (4 * (2 * 64 * 64 + 2 * 64 * 16 + 3 * 64 * 192) + 256 * 64);
  EXPECT_DOUBLE_EQ(flops_per_token_forward(load_model("tiny-llama"), 32),
                   gemms + 4 * 4.0 * 32 * 8 * 8);

  // Mistral 7B sees 4096 tokens, so that beyond them a longer sequence costs nothing more a token.
  const ModelSpec mistral = load_model("mistral-7b");
  EXPECT_DOUBLE_EQ(flops_per_token_forward(mistral, 8192), flops_per_token_forward(mistral, 4096));
  EXPECT_LT(flops_per_token_forward(mistral, 2048), flops_per_token_forward(mistral, 4096));
}

TEST(Model, KeyValueCacheOfOneToken) {
  EXPECT_DOUBLE_EQ(kv_cache_bytes_per_token(load_model("llama-3.1-8b")), 2.0 * 32 * 8 * 128 * 2);
  EXPECT_DOUBLE_EQ(kv_cache_bytes_per_token(load_model("gpt3-175b")), 2.0 * 96 * 12288 * 2);
  EXPECT_DOUBLE_EQ(kv_cache_bytes_per_token(load_model("falcon-7b")), 2.0 * 32 * 64 * 2);
}

// Ouro runs its 48 layers four times; the output layer once.
TEST(Model, LoopedLayersCountTheirWeightsOnceAndTheirWorkEachTime) {
  ModelSpec model = load_model("ouro-2.6b");
  EXPECT_EQ(model.loops, 4);
  const double output = 2.0 * 49152 * 2048, all = flops_per_token_forward(model, 4096);
  const double cache = kv_cache_bytes_per_token(model);
  model.loops = 1;
  EXPECT_DOUBLE_EQ(all - output, 4 * (flops_per_token_forward(model, 4096) - output));
  EXPECT_DOUBLE_EQ(cache, 4 * kv_cache_bytes_per_token(model));
}

std::string layout(const Layer& layer) {
  std::string text = layer.name + ":";
  for (const Block& block : layer.blocks) {
    text += (block.shape.get("post", 0) != 0 ? " post-" : " ") + block.kind;
  }
  return text + (layer.parallel_residual ? " (parallel)" : "");
}

std::string layout(std::string_view model) { return layout(load_model(model).kinds.front()); }

TEST(Model, OrdersTheBlocksOfALayerAsTheFamilyDoes) {
  EXPECT_EQ(layout("llama-3.1-8b"), "decoder: norm attention norm mlp");
  EXPECT_EQ(layout("gpt-j-6b"), "decoder: norm attention mlp (parallel)");
  EXPECT_EQ(layout("gpt-neox-20b"), "decoder: norm attention norm mlp (parallel)");
  EXPECT_EQ(layout("redpajama-3b"), "decoder: norm attention norm mlp");
  EXPECT_EQ(layout("falcon-7b"), "decoder: norm attention mlp (parallel)");
  EXPECT_EQ(layout("falcon-40b"), "decoder: norm attention norm mlp (parallel)");
  EXPECT_EQ(layout("olmo2-7b"), "decoder: attention post-norm mlp post-norm");
  EXPECT_EQ(layout("gemma-2-2b"), "decoder-local: norm attention post-norm norm mlp post-norm");
}

TEST(Model, KnowsWhichLayersSeeAWindow) {
  const auto kinds = [](std::string_view name, std::int64_t layers) {
    const ModelSpec model = load_model(name);
    std::string text;
    for (std::int64_t i = 0; i < layers; ++i) {
      text += model.layer(i).name == "decoder-local" ? 'l' : 'g';
    }
    return text;
  };
  EXPECT_EQ(kinds("gemma-2-2b", 6), "lglglg");
  EXPECT_EQ(kinds("gemma-3-1b", 13), "lllllglllllgl");
}

TEST(Model, TensorParallelismDividesTheRightAxis) {
  using Split = Tensor::Split;
  const ModelSpec model = load_model("tiny-llama");
  std::map<std::string, Tensor> tensors;
  for (const Tensor& tensor : tensors_of(model.kinds[0].blocks, model)) {
    tensors[tensor.name] = tensor;
  }
  EXPECT_EQ(tensors["q.weight"].split, Split::heads);
  EXPECT_EQ(tensors["k.weight"].split, Split::kv_heads);
  EXPECT_EQ(tensors["v.weight"].numel(), 64 * 16);
  EXPECT_EQ(tensors["out.weight"].split, Split::rows);
  EXPECT_EQ(tensors["gate.weight"].split, Split::columns);
  EXPECT_EQ(tensors["up.weight"].columns, 192);
  EXPECT_EQ(tensors["down.weight"].split, Split::rows);
  EXPECT_EQ(tensors["down.weight"].rows, 192);
  EXPECT_EQ(tensors["norm.weight"].split, Split::none);
  EXPECT_EQ(tensors_of(model.embedding, model).front().split, Split::rows);
  EXPECT_EQ(tensors_of(model.output, model).back().split, Split::rows);
}

TEST(Attributes, KeepTheOrderInWhichTheyWereWritten) {
  Attributes a = {{"heads", 8}, {"ffn", 32}};
  a.set("heads", 4);
  a.set("window", 0);
  EXPECT_EQ(a.at("heads"), 4);
  EXPECT_EQ(a.get("absent", 7), 7);
  EXPECT_EQ(a, (Attributes{{"heads", 4}, {"ffn", 32}, {"window", 0}}));
}

}  // namespace
// Causal attention meets (s + 1) / 2 keys in the mean; in a window of w the first w queries meet 1 .. w and the others w.
TEST(FlopsPerToken, CountsTheKeysThatACausalQueryMeets) {
  const auto llama = load_model("tiny-llama"), mistral = load_model("mistral-7b");
  const auto keys = [](std::int64_t seq, std::int64_t window) {
    double sum = 0.0;
    for (std::int64_t q = 1; q <= seq; ++q) sum += static_cast<double>(std::min(q, window));
    return sum / static_cast<double>(seq);
  };
  for (const std::int64_t seq : {32, 33}) {
    const double weights = 2.0 * flops_per_token_forward(llama, 1) - flops_per_token_forward(llama, 2);
    const double a_key = flops_per_token_forward(llama, 2) - flops_per_token_forward(llama, 1);
    EXPECT_NEAR(flops_per_token_forward(llama, seq, true), weights + a_key * keys(seq, seq), 1e-6 * weights);
  }
  const double weights = 2.0 * flops_per_token_forward(mistral, 1) - flops_per_token_forward(mistral, 2);
  const double a_key = flops_per_token_forward(mistral, 2) - flops_per_token_forward(mistral, 1);
  EXPECT_NEAR(flops_per_token_forward(mistral, 8192, true), weights + a_key * keys(8192, 4096), 1e-6 * weights);
}

}  // namespace core

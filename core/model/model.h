#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io/document.h"

namespace core {

// Named integers of a block ("heads", "ffn", ...). Small, ordered as written, printable.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string_view, std::int64_t>> values);

  // Value of a name; CORE_ASSERTs that it is there.
  std::int64_t at(std::string_view name) const;
  // Value of a name, or `otherwise` where the block has no such property.
  std::int64_t get(std::string_view name, std::int64_t otherwise) const;
  void set(std::string_view name, std::int64_t value);
  const std::vector<std::pair<std::string, std::int64_t>>& all() const { return values_; }
  bool operator==(const Attributes&) const = default;

 private:
  std::vector<std::pair<std::string, std::int64_t>> values_;
};

enum class Activation : std::int64_t { gelu = 0, relu = 1, silu = 2, squared_relu = 3 };

// One block of a layer: a kind of core/model/blocks and its shape.
//   norm:      dim, rms (1 RMSNorm, 0 LayerNorm), weight (0 = no affine), bias, post (only where 1: on the
//              output of the block before it, ahead of the residual)
//   moe:       routed experts and what stands beside them: experts, top_k, ffn (of one expert), gated, activation, shared_ffn
//              (width of all shared experts together, 0 = none), groups and groups_per_token (device-limited routing, 0 =
//              none), and what the families add
//   attention: heads, kv_heads, head_dim, qkv_bias, out_bias, qk_norm (0 none, 1 per head: weights of
//              head_dim each for q and k; 2 over the whole projection), qk_norm_bias (LayerNorm q/k norm:
//              weight and bias), window (0 = none), rope, alibi
//              as they apply: gate (1: the output is multiplied with a gate), sinks (1: one parameter a head), chunk
//              (attention within chunks of this many tokens)
//   mla:       heads, q_rank (0 = none), kv_rank, nope_dim, rope_dim, v_dim, bias; with an indexer index_heads, index_dim and
//              index_top_k
//   gated_delta, kda, mamba2, rwkv_time, rwkv_channel: linear attention and what belongs to it; see their files
//   projection: inputs (vectors of the hidden size that become one)
//   mlp:       ffn, gated, activation (Activation), up_bias, down_bias
//   embedding: vocab, positions (rows of a learned position table, 0 = none), dim (width of the table;
//              differs from hidden for OPT-350m, which then has a projection)
//   output:    vocab, tied, bias, dim (as embedding)
struct Block {
  std::string kind;
  Attributes shape;
  bool operator==(const Block&) const = default;
};

// One transformer layer: its blocks in order. A residual is added after each attention and mlp (after
// its post-norm where one follows), or once after both when they run in parallel.
struct Layer {
  std::string name;  // "decoder", "decoder-local", ...
  std::vector<Block> blocks;
  bool parallel_residual = false;  // attention and mlp read the same residual (GPT-J, NeoX, Falcon, Phi)
  bool operator==(const Layer&) const = default;
};

struct ModelSpec {
  std::string name;
  std::string family;  // name of the file in core/model/families
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::vector<Layer> kinds;               // distinct layers
  std::vector<std::uint16_t> layer_kind;  // kind of each layer, first to last
  std::vector<Block> embedding;           // before the layers: embedding [, norm]
  std::vector<Block> output;              // after the layers: norm, output
  // Multi-token prediction modules (DeepSeek-V3, arXiv 2412.19437, section 2.2): trained with the model on the last stage,
  // not counted as its parameters. Each has its blocks, from the norms of its two inputs to an output block of its own loss.
  std::vector<Layer> mtp;
  bool tied_embeddings = false;
  std::int64_t loops = 1;          // times that the layers are run with the same weights (recursive models)
  double hidden_dropout = 0.0;     // rates as in the configuration; 0 = none
  double attention_dropout = 0.0;
  std::int64_t max_positions = 0;  // longest sequence of the configuration; 0 = not stated
  std::vector<std::string> warnings;  // keys that were read and have no effect, deduced values, ...

  std::int64_t layers() const { return static_cast<std::int64_t>(layer_kind.size()); }
  const Layer& layer(std::int64_t i) const { return kinds[layer_kind[static_cast<std::size_t>(i)]]; }
};

// One parameter tensor. `split` is the axis that tensor parallelism divides.
struct Tensor {
  enum class Split { none, columns, rows, heads, kv_heads };
  std::string name;
  std::int64_t rows = 0, columns = 0;  // a vector has columns = 1
  Split split = Split::none;
  std::int64_t experts = 0;  // > 0: of routed experts, one such tensor each; expert parallel divides them, expert tensor
                             // parallel the axis `split`
  std::int64_t numel() const { return rows * columns * (experts > 0 ? experts : 1); }
};

// All parameter tensors of a list of blocks, in order.
std::vector<Tensor> tensors_of(const std::vector<Block>& blocks, const ModelSpec& model);

struct ParameterCount {
  std::int64_t total = 0;      // tied embeddings counted once
  std::int64_t active = 0;     // per token, all embedding tables included
  std::int64_t embedding = 0;  // input embedding tables, positions included
  std::int64_t output = 0;     // output layer (0 when tied)
  std::int64_t mtp = 0;        // multi-token prediction modules, not in `total`
};
ParameterCount count_parameters(const ModelSpec& model);

// Forward matrix-multiply FLOPs of one token at a sequence length, attention counted in full (12 L h s
// convention): 2 x weights of all GEMMs incl. the output layer (of routed experts top_k) + 4 s heads head_dim per attention,
// where a sliding window, a chunk or chosen keys stand for s when they are fewer; of linear attention the chunked
// algorithm's products. `causal` counts only the keys that a query meets. Multi-token prediction modules count, looped layers
// as often as they run.
double flops_per_token_forward(const ModelSpec& model, std::int64_t seq, bool causal = false);

// Key-value cache of one token in 16 bits: 2 (k and v) x kv_heads x head_dim x 2 bytes, over all layers; latent attention
// keeps its latent and rotary key instead, linear attention nothing that grows with the sequence.
double kv_cache_bytes_per_token(const ModelSpec& model);

// A family of Hugging Face configurations: one file in core/model/families.
struct ModelFamily {
  std::string_view name;
  std::vector<std::string_view> (*architectures)();  // "LlamaForCausalLM", ...
  std::vector<std::string_view> (*model_types)();    // "llama", ...
  ModelSpec (*read)(const Document& config);         // throws InputError
  // Kinds of block beside attention and mlp that `read` knows. A configuration with keys of another kind is refused: it is a
  // relative of this family that we would misread.
  static constexpr unsigned experts = 1, latent = 2, linear = 4;
  unsigned reads = 0;
};
namespace families {
std::span<const ModelFamily* const> all();
}

// Reads a Hugging Face config.json (or our own data/models file, which has the same keys). Throws
// InputError, one line, for an unknown architecture (naming it, and the known ones), a missing key, null,
// a string for a number, Infinity, sizes that do not divide (hidden % heads, heads % kv_heads).
ModelSpec read_model_config(const Document& config, std::string name);

// `--model`: a shipped name, or a path to a config.json (anything with a '/' or ending in .json).
ModelSpec load_model(std::string_view name_or_path);

}  // namespace core

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/model/config_reader.h"
#include "core/model/model.h"

namespace core {

// A dense decoder-only transformer as the families describe it: what a configuration says, under
// one name each. decoder_spec writes it out as layers and blocks.
struct Decoder {
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t vocab = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;
  std::int64_t max_positions = 0;

  struct Norm {
    bool rms = true;
    bool weight = true;
    bool bias = false;
  } norm;
  enum class NormPlacement {
    before,  // before attention and before the MLP
    after,   // on the output of each
    around,  // both
    shared,  // one norm that attention and MLP read together
  } norms = NormPlacement::before;
  bool parallel_residual = false;

  bool qkv_bias = false;
  bool out_bias = false;
  enum class QkNorm { none, per_head, full_width, without_weights } qk_norm = QkNorm::none;
  bool qk_norm_bias = false;
  bool attention_gate = false;  // the output is multiplied with a gate of the same width
  bool attention_sinks = false;
  bool rope = true;
  bool alibi = false;
  std::vector<std::int64_t> windows;  // of each layer, 0 = none; empty: none at all

  bool gated = true;
  Activation activation = Activation::silu;
  bool up_bias = false;
  bool down_bias = false;

  std::int64_t table_dim = 0;          // width of the embedding tables where it is not `hidden`
  std::int64_t learned_positions = 0;  // rows of a position table
  bool embedding_norm = false;
  bool final_norm = true;
  bool tied = false;
  bool output_bias = false;

  double hidden_dropout = 0.0;
  double attention_dropout = 0.0;
};

// Largest sizes that are read; with them no count of parameters leaves 64 bits.
struct Largest {
  static constexpr std::int64_t hidden = std::int64_t{1} << 20;
  static constexpr std::int64_t layers = std::int64_t{1} << 14;
  static constexpr std::int64_t vocab = std::int64_t{1} << 28;
  static constexpr std::int64_t heads = std::int64_t{1} << 14;
  static constexpr std::int64_t head_dim = std::int64_t{1} << 14;
  static constexpr std::int64_t projection = std::int64_t{1} << 21;  // heads x head_dim
  static constexpr std::int64_t ffn = std::int64_t{1} << 22;
  static constexpr std::int64_t positions = std::int64_t{1} << 28;
  static constexpr std::int64_t experts = std::int64_t{1} << 14;
  static constexpr std::int64_t experts_width = std::int64_t{1} << 24;  // experts x their ffn
  static constexpr std::int64_t kernel = std::int64_t{1} << 10;         // taps of a convolution
};

// What a configuration class takes for a key that a file may leave out.
struct ClassDefaults {
  std::optional<std::int64_t> vocab = std::nullopt;
  std::optional<std::int64_t> heads = std::nullopt;
  std::optional<std::int64_t> kv_heads = std::nullopt;  // none: as many as heads
  std::optional<std::int64_t> head_dim = std::nullopt;  // none: hidden / heads
};

// The sizes under the keys that most families share: hidden_size, num_hidden_layers, vocab_size,
// num_attention_heads, num_key_value_heads, head_dim, intermediate_size, max_position_embeddings,
// attention_dropout.
Decoder read_shared_keys(ConfigReader& in, const ClassDefaults& defaults = {});

// The sizes under GPT-2's keys (n_embd, n_layer, n_head, n_inner, n_positions, vocab_size), and
// what its relatives share: LayerNorm, biases, learned positions, no gate.
Decoder read_gpt2_keys(ConfigReader& in);

// Width of one head: the key head_dim where it stands, else hidden / heads, which must divide.
std::int64_t read_head_dim(
    ConfigReader& in, Keys hidden_keys, std::int64_t hidden, Keys heads_keys, std::int64_t heads);

// Rates of dropout after a block, on the embedding and on attention scores. One rate stands for the
// first two; a warning says so where they differ.
void read_dropouts(
    ConfigReader& in, Decoder& decoder, Keys residual, Keys embedding, Keys attention);
// The same for a class whose rates are 0.1 where the file has none.
void read_gpt2_dropouts(ConfigReader& in, Decoder& decoder);

// Window of each layer: as layer_types says, else `window` where `is_local`.
std::vector<std::int64_t> read_windows(ConfigReader& in,
                                       std::int64_t layers,
                                       std::int64_t window,
                                       const std::function<bool(std::int64_t layer)>& is_local);

// The same for Qwen: with use_sliding_window, the layers from max_window_layers on see
// sliding_window.
std::vector<std::int64_t> read_max_window_layers(ConfigReader& in, std::int64_t layers);

// Blocks of the decoder's sizes, for families whose layers differ.
Block norm_block(const Decoder& decoder);
Block attention_block(const Decoder& decoder, std::int64_t window);
Block mlp_block(const Decoder& decoder);
// A layer of a mixer and a feed-forward block, with the decoder's norms.
Layer decoder_layer(const Decoder& decoder, std::string name, Block mixer, Block feed_forward);

// A multi-token prediction module (DeepSeek-V3, arXiv 2412.19437, section 2.2): a norm of the state and of the next token's
// embedding, a projection of both to one, a layer, a norm and a loss of its own through the shared output layer.
Layer mtp_module(const Decoder& decoder, const Layer& layer);

// Writes the decoder out as a model and ends the reading of its configuration. `layers` are its layers, first to last; equal
// ones become one kind. Without them all layers are attention and mlp, with the decoder's windows.
ModelSpec decoder_spec(const Decoder& decoder, ConfigReader& in);
ModelSpec decoder_spec(const Decoder& decoder,
                       const std::vector<Layer>& layers,
                       ConfigReader& in,
                       std::vector<Layer> mtp = {});

}  // namespace core

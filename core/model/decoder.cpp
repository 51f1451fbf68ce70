#include "core/model/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "core/error.h"

namespace core {
namespace {

// A norm on the output of the block before it.
Block post_norm_block(const Decoder& d) {
  Block block = norm_block(d);
  block.shape.set("post", 1);
  return block;
}

std::vector<Block> layer_blocks(const Decoder& d, Block mixer, Block feed_forward) {
  const Block norm = norm_block(d);
  const Block post = post_norm_block(d);
  switch (d.norms) {
    case Decoder::NormPlacement::before:
      return {norm, std::move(mixer), norm, std::move(feed_forward)};
    case Decoder::NormPlacement::after:
      return {std::move(mixer), post, std::move(feed_forward), post};
    case Decoder::NormPlacement::around:
      return {norm, std::move(mixer), post, norm, std::move(feed_forward), post};
    case Decoder::NormPlacement::shared:
      return {norm, std::move(mixer), std::move(feed_forward)};
  }
  CORE_ASSERT(false);
}

std::int64_t table_dim(const Decoder& d) { return d.table_dim == 0 ? d.hidden : d.table_dim; }

std::vector<Block> embedding_blocks(const Decoder& d) {
  std::vector<Block> blocks = {
      {"embedding",
       {{"vocab", d.vocab}, {"positions", d.learned_positions}, {"dim", table_dim(d)}}}};
  if (d.embedding_norm) {
    blocks.push_back(norm_block(d));
  }
  return blocks;
}

std::vector<Block> output_blocks(const Decoder& d) {
  std::vector<Block> blocks;
  if (d.final_norm) {
    blocks.push_back(norm_block(d));
  }
  blocks.push_back(
      {"output",
       {{"vocab", d.vocab}, {"tied", d.tied}, {"bias", d.output_bias}, {"dim", table_dim(d)}}});
  return blocks;
}

// Layers of attention and mlp, named by what they see.
std::vector<Layer> windowed_layers(const Decoder& d) {
  const bool all_the_same = std::ranges::adjacent_find(d.windows, std::not_equal_to<>()) == d.windows.end();
  std::vector<Layer> layers;
  for (std::int64_t i = 0; i < d.layers; ++i) {
    const std::int64_t window = d.windows.empty() ? 0 : d.windows[static_cast<std::size_t>(i)];
    const std::string name = all_the_same ? "decoder" : window == 0 ? "decoder-global" : "decoder-local";
    layers.push_back(decoder_layer(d, name, attention_block(d, window), mlp_block(d)));
  }
  return layers;
}

// One kind for all equal layers, in order of appearance.
void add_layers(const std::vector<Layer>& layers, ModelSpec& model) {
  for (const Layer& layer : layers) {
    const auto kind = std::ranges::find(model.kinds, layer);
    model.layer_kind.push_back(static_cast<std::uint16_t>(kind - model.kinds.begin()));
    if (kind == model.kinds.end()) {
      model.kinds.push_back(layer);
    }
  }
}

}  // namespace

Decoder read_shared_keys(ConfigReader& in, const ClassDefaults& defaults) {
  const auto size =
      [&](std::string_view key, std::optional<std::int64_t> otherwise, std::int64_t most) {
        return otherwise ? in.size_or_assume({key}, *otherwise, most, class_default)
                         : in.size({key}, most);
      };
  Decoder d;
  d.hidden = in.size({"hidden_size"}, Largest::hidden);
  d.layers = in.size({"num_hidden_layers"}, Largest::layers);
  d.vocab = size("vocab_size", defaults.vocab, Largest::vocab);
  d.heads = size("num_attention_heads", defaults.heads, Largest::heads);
  d.kv_heads =
      in.size_or_assume({"num_key_value_heads"},
                        defaults.kv_heads.value_or(d.heads),
                        Largest::heads,
                        defaults.kv_heads ? class_default : "as many as num_attention_heads");
  in.require_multiple({"num_attention_heads"}, d.heads, {"num_key_value_heads"}, d.kv_heads);
  d.head_dim = defaults.head_dim
                   ? size("head_dim", defaults.head_dim, Largest::head_dim)
                   : read_head_dim(in, {"hidden_size"}, d.hidden, {"num_attention_heads"}, d.heads);
  d.ffn = in.size({"intermediate_size"}, Largest::ffn);
  d.max_positions = in.size_or({"max_position_embeddings"}, 0, Largest::positions);
  d.attention_dropout = in.rate({"attention_dropout"});
  return d;
}

Decoder read_gpt2_keys(ConfigReader& in) {
  constexpr std::int64_t ffn_per_hidden = 4;
  Decoder d;
  d.hidden = in.size({"n_embd"}, Largest::hidden);
  d.layers = in.size({"n_layer"}, Largest::layers);
  d.vocab = in.size({"vocab_size"}, Largest::vocab);
  d.heads = d.kv_heads = in.size({"n_head"}, Largest::heads);
  d.head_dim = read_head_dim(in, {"n_embd"}, d.hidden, {"n_head"}, d.heads);
  d.ffn = in.size_or({"n_inner"}, ffn_per_hidden * d.hidden, Largest::ffn);
  d.max_positions = d.learned_positions = in.size({"n_positions"}, Largest::positions);
  d.norm = {.rms = false, .weight = true, .bias = true};
  d.qkv_bias = d.out_bias = d.up_bias = d.down_bias = true;
  d.rope = false;
  d.gated = false;
  return d;
}

std::int64_t read_head_dim(
    ConfigReader& in, Keys hidden_keys, std::int64_t hidden, Keys heads_keys, std::int64_t heads) {
  if (const std::int64_t given = in.size_or({"head_dim"}, 0, Largest::head_dim)) {
    return given;
  }
  in.require_multiple(hidden_keys, hidden, heads_keys, heads);
  return hidden / heads;
}

void read_dropouts(
    ConfigReader& in, Decoder& decoder, Keys residual, Keys embedding, Keys attention) {
  decoder.hidden_dropout = in.rate(residual);
  decoder.attention_dropout = in.rate(attention);
  if (in.has(embedding) && in.rate(embedding) != decoder.hidden_dropout) {
    in.warn(fmt::format("{}: has no effect; {} counts for the embedding too",
                        *embedding.begin(),
                        *residual.begin()));
  }
}

void read_gpt2_dropouts(ConfigReader& in, Decoder& decoder) {
  read_dropouts(in, decoder, {"resid_pdrop"}, {"embd_pdrop"}, {"attn_pdrop"});
  decoder.hidden_dropout = in.rate_or_assume({"resid_pdrop"}, 0.1);
  decoder.attention_dropout = in.rate_or_assume({"attn_pdrop"}, 0.1);
}

std::vector<std::int64_t> read_windows(ConfigReader& in,
                                       std::int64_t layers,
                                       std::int64_t window,
                                       const std::function<bool(std::int64_t)>& is_local) {
  std::vector<std::int64_t> windows;
  const Document* types = in.find({"layer_types"});
  if (types == nullptr) {
    for (std::int64_t i = 0; i < layers; ++i) {
      windows.push_back(is_local(i) ? window : 0);
    }
    return windows;
  }
  if (static_cast<std::int64_t>(types->as_list().size()) != layers) {
    types->complain(fmt::format("as many as num_hidden_layers = {}", layers));
  }
  for (const Document& type : types->as_list()) {
    if (type.as_text() != "full_attention" && type.as_text() != "sliding_attention") {
      type.complain("full_attention or sliding_attention");
    }
    windows.push_back(type.as_text() == "sliding_attention" ? window : 0);
  }
  return windows;
}

std::vector<std::int64_t> read_max_window_layers(ConfigReader& in, std::int64_t layers) {
  constexpr std::int64_t default_full = 28;  // Qwen2Config
  const bool on = in.flag({"use_sliding_window"}, false);
  const std::int64_t window = in.size_or({"sliding_window"}, 0, Largest::positions);
  const Document* key = in.find({"max_window_layers"});
  const std::int64_t full = key == nullptr ? default_full : key->as_int(0, Largest::positions);
  return read_windows(in, layers, on ? window : 0, [=](std::int64_t i) { return i >= full; });
}

Block norm_block(const Decoder& d) {
  return {
      "norm",
      {{"dim", d.hidden}, {"rms", d.norm.rms}, {"weight", d.norm.weight}, {"bias", d.norm.bias}}};
}

Block attention_block(const Decoder& d, std::int64_t window) {
  Block block{"attention",
          {{"heads", d.heads},
           {"kv_heads", d.kv_heads},
           {"head_dim", d.head_dim},
           {"qkv_bias", d.qkv_bias},
           {"out_bias", d.out_bias},
           {"qk_norm", static_cast<std::int64_t>(d.qk_norm)},
           {"qk_norm_bias", d.qk_norm_bias},
           {"window", window},
           {"rope", d.rope},
           {"alibi", d.alibi}}};
  if (d.attention_gate) {
    block.shape.set("gate", 1);
  }
  if (d.attention_sinks) {
    block.shape.set("sinks", 1);
  }
  return block;
}

Block mlp_block(const Decoder& d) {
  return {"mlp",
          {{"ffn", d.ffn},
           {"gated", d.gated},
           {"activation", static_cast<std::int64_t>(d.activation)},
           {"up_bias", d.up_bias},
           {"down_bias", d.down_bias}}};
}

Layer decoder_layer(const Decoder& d, std::string name, Block mixer, Block feed_forward) {
  return {std::move(name), layer_blocks(d, std::move(mixer), std::move(feed_forward)), d.parallel_residual};
}

Layer mtp_module(const Decoder& d, const Layer& layer) {
  Layer module{"mtp", {norm_block(d), norm_block(d)}, layer.parallel_residual};
  module.blocks.push_back({"projection", {{"inputs", 2}}});
  module.blocks.insert(module.blocks.end(), layer.blocks.begin(), layer.blocks.end());
  module.blocks.push_back(norm_block(d));
  module.blocks.push_back({"output", {{"vocab", d.vocab}, {"tied", 1}, {"bias", 0}, {"dim", d.hidden}}});
  return module;
}

ModelSpec decoder_spec(const Decoder& d, ConfigReader& in) { return decoder_spec(d, windowed_layers(d), in); }

ModelSpec decoder_spec(const Decoder& d, const std::vector<Layer>& layers, ConfigReader& in, std::vector<Layer> mtp) {
  if (d.heads * d.head_dim > Largest::projection) {
    throw InputError(fmt::format("{}: {} heads of {}: expected a width of at most {} together",
                                 in.where(),
                                 d.heads,
                                 d.head_dim,
                                 Largest::projection));
  }
  ModelSpec model;
  model.hidden = d.hidden;
  model.vocab = d.vocab;
  add_layers(layers, model);
  model.mtp = std::move(mtp);
  model.embedding = embedding_blocks(d);
  model.output = output_blocks(d);
  model.tied_embeddings = d.tied;
  model.hidden_dropout = d.hidden_dropout;
  model.attention_dropout = d.attention_dropout;
  model.max_positions = d.max_positions;
  model.warnings = in.finish();
  return model;
}

}  // namespace core

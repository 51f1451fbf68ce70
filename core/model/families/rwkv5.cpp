#include "core/model/decoder.h"
#include "core/model/scan.h"

namespace core::families {
namespace {

// Rwkv5Config: a channel mixing of 3.5 times the hidden size, rounded down to a multiple of 32.
std::int64_t default_ffn(std::int64_t hidden) { return hidden * 7 / 2 / 32 * 32; }

// RWKV-5 (Eagle): time mixing and channel mixing with a LayerNorm before each, one more after the embedding.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d;
  d.hidden = in.size({"hidden_size"}, Largest::hidden);
  d.layers = in.size({"num_hidden_layers"}, Largest::layers);
  d.vocab = in.size({"vocab_size"}, Largest::vocab);
  const std::int64_t width = in.size_or({"attention_hidden_size"}, d.hidden, Largest::hidden);
  const std::int64_t head_dim = in.size({"head_size"}, Largest::head_dim);
  in.require_multiple({"attention_hidden_size", "hidden_size"}, width, {"head_size"}, head_dim);
  d.heads = d.kv_heads = width / head_dim;
  d.head_dim = head_dim;
  d.ffn = in.size_or({"intermediate_size"}, default_ffn(d.hidden), Largest::ffn);
  if (d.ffn == 0) in.missing("intermediate_size");
  d.max_positions = in.size_or({"context_length"}, 0, Largest::positions);
  d.norm = {.rms = false, .weight = true, .bias = true};
  d.embedding_norm = true;
  d.tied = in.flag({"tie_word_embeddings"}, false);
  in.ignore({"rescale_every", "model_version"});
  const Block time{"rwkv_time", {{"heads", d.heads}, {"head_dim", head_dim}, {"chunk", scan_figures().rwkv_chunk}}};
  const Layer layer = decoder_layer(d, "rwkv", time, {"rwkv_channel", {{"ffn", d.ffn}}});
  return decoder_spec(d, std::vector<Layer>(static_cast<std::size_t>(d.layers), layer), in);
}

}  // namespace

extern const ModelFamily rwkv5;
const ModelFamily rwkv5 = {
    .name = "rwkv5",
    .architectures =
        [] {
          return std::vector<std::string_view>{"RwkvForCausalLM", "Rwkv5ForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"rwkv5"};
        },
    .read = read,
    .reads = ModelFamily::linear,
};

}  // namespace core::families

#include "core/model/decoder.h"

namespace core::families {
namespace {

std::int64_t read_kv_heads(ConfigReader& in, std::int64_t heads) {
  if (!in.flag({"multi_query_attention"}, false)) {
    in.ignore({"multi_query_group_num"});
    return heads;
  }
  const std::int64_t kv_heads = in.size({"multi_query_group_num"}, Largest::heads);
  in.require_multiple({"num_attention_heads"}, heads, {"multi_query_group_num"}, kv_heads);
  return kv_heads;
}

// ChatGLM 2 and 3, GLM-4 under its own code: as Llama under Megatron's names, biases on queries, keys and values.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d;
  d.hidden = in.size({"hidden_size"}, Largest::hidden);
  d.layers = in.size({"num_layers"}, Largest::layers);
  d.vocab = in.size({"padded_vocab_size"}, Largest::vocab);
  d.heads = in.size({"num_attention_heads"}, Largest::heads);
  d.kv_heads = read_kv_heads(in, d.heads);
  d.head_dim = in.size({"kv_channels"}, Largest::head_dim);
  d.ffn = in.size({"ffn_hidden_size"}, Largest::ffn);
  d.max_positions = in.size_or({"seq_length"}, 0, Largest::positions);
  d.norm.rms = in.flag({"rmsnorm"}, true);
  d.norm.bias = !d.norm.rms;
  d.final_norm = in.flag({"post_layer_norm"}, true);
  const bool bias = in.flag({"add_bias_linear"}, false);
  d.qkv_bias = bias || in.flag({"add_qkv_bias"}, false);
  d.out_bias = d.up_bias = d.down_bias = bias;
  d.tied = in.flag({"tie_word_embeddings"}, false);
  d.hidden_dropout = in.rate({"hidden_dropout"});
  d.attention_dropout = in.rate({"attention_dropout"});
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily chatglm;
const ModelFamily chatglm = {
    .name = "chatglm",
    .architectures =
        [] {
          return std::vector<std::string_view>{"ChatGLMModel", "ChatGLMForConditionalGeneration"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"chatglm"};
        },
    .read = read,
};

}  // namespace core::families

#include "core/model/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"

namespace core {
namespace {

// Keys that change neither the shape of a model nor the cost of training it.
constexpr std::string_view without_cost[] = {
    // what the file is
    "architectures",
    "model_type",
    "transformers_version",
    "auto_map",
    "_name_or_path",
    "source",
    "checked",
    "note",
    "tokenizer_class",
    "torch_dtype",
    "dtype",
    "is_llama_config",
    "id2label",
    "label2id",
    "task_specific_params",
    "transformers.js_config",
    "is_decoder",
    "use_return_dict",
    "return_dict",
    "torchscript",
    "is_encoder_decoder",
    "init_device",
    "verbose",
    "name",
    // tokens
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "unk_token_id",
    "prefix",
    "image_token_index",
    "boi_token_index",
    "eoi_token_index",
    "special_tokens_map",
    // initial values and constants of formulas
    "initializer_range",
    "init_std",
    "init_config",
    "initializer_cutoff_factor",
    "rms_norm_eps",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "norm_epsilon",
    "norm_eps",
    "layernorm_epsilon",
    "logit_scale",
    "query_pre_attn_scalar",
    "emb_init_std",
    "emb_init_uniform_lim",
    "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx",
    "reorder_and_upcast_attn",
    "embedding_fraction",
    "rescale_prenorm_residual",
    "attn_config.softmax_scale",
    // positions that are computed, not learned
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "rope_local_base_freq",
    "rope_interleaved",
    "rotary_pct",
    "rotary_emb_base",
    "rotary_dim",
    "rotary",
    "partial_rotary_factor",
    "original_max_position_embeddings",
    "interpolate_factor",
    "full_attn_mod",
    "offset_alibi",
    "attn_config.alibi_bias_max",
    "n_ctx",
    "sliding_window_size",
    "original_rope",
    // inference and other heads
    "use_cache",
    "cache_implementation",
    "pretraining_tp",
    "num_logits_to_keep",
    "max_length",
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "logit_softcapping",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "router_aux_loss_coef",
    "runner_max_sequence_length",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "classifier_dropout",
    "n_special",
    "predict_special_tokens",
    "problem_type",
    "use_bidirectional_attention",
    "inference_runner",
    "validate_runner_input",
    "pre_allocate_kv_cache",
    "max_sequence_length",
    "max_batch_size",
    "slow_but_exact",
    "hidden_act_param",
    "use_pad_tok_in_ffn",
    // numerics and kernels that a framework chooses by itself
    "attention_softmax_in_fp32",
    "scale_attention_softmax_in_fp32",
    "masked_softmax_fusion",
    "bias_dropout_fusion",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "attn_config.attn_impl",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "unsloth_fixed",
    "logit_cap",
};

struct Unmodelled {
  std::string_view key, consequence;
};

// Keys that make training dearer (or cheaper) than we say.
constexpr Unmodelled unmodelled[] = {
    {"quantization_config", "the recipe says in which formats the model is trained"},
    {"attn_logit_softcapping", "the cap on attention scores is not in the predicted time"},
    {"final_logit_softcapping", "the cap on logits is not in the predicted time and memory"},
    {"activation_dropout", "dropout inside the MLP is not modelled"},
    {"layerdrop", "every layer is taken to run in each step"},
    {"clip_qkv", "clipping of queries, keys and values is not in the predicted time"},
    {"attn_config.clip_qkv", "clipping of queries, keys and values is not in the predicted time"},
    {"fp32_residual_connection", "residuals are taken to be in the recipe's format"},
    {"residual_in_fp32", "residuals are taken to be in the recipe's format"},
    {"num_nextn_predict_layers", "layers that predict further tokens are left out"},
    {"num_mtp_modules", "layers that predict further tokens are left out"},
    {"apply_residual_connection_post_layernorm", "the residual is taken before the norm"},
    {"gradient_checkpointing", "recompute is a setting of the plan"},
    {"add_cross_attention", "cross-attention is left out"},
};

template <typename Table>
bool contains(const Table& table, std::string_view key) {
  return std::find(std::begin(table), std::end(table), key) != std::end(table);
}

// Whether a key is off: null, false, 0 or "".
bool is_off(const Document& value) {
  switch (value.kind()) {
    case Document::Kind::null:
      return true;
    case Document::Kind::boolean:
      return !value.as_bool();
    case Document::Kind::integer:
    case Document::Kind::real:
      return value.as_real() == 0.0;
    case Document::Kind::text:
      return value.as_text().empty();
    case Document::Kind::list:
      return value.as_list().empty();
    case Document::Kind::object:
      return false;
  }
  return false;
}

void refuse_non_finite(const Document& value) {
  if (value.is_number()) {
    value.as_real();
  } else if (value.is_list()) {
    std::ranges::for_each(value.as_list(), refuse_non_finite);
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.as_object()) {
      refuse_non_finite(member);
    }
  }
}

std::optional<Activation> activation_of(std::string_view name) {
  using Named = std::pair<std::string_view, Activation>;
  static constexpr Named names[] = {
      {"gelu", Activation::gelu},
      {"gelu_new", Activation::gelu},
      {"gelu_fast", Activation::gelu},
      {"gelu_python", Activation::gelu},
      {"gelu_pytorch_tanh", Activation::gelu},
      {"quick_gelu", Activation::gelu},
      {"relu", Activation::relu},
      {"relu2", Activation::squared_relu},
      {"silu", Activation::silu},
      {"swish", Activation::silu},
  };
  const auto found = std::ranges::find(names, name, &Named::first);
  return found == std::end(names) ? std::nullopt : std::optional(found->second);
}

std::string_view name_of(Activation activation) {
  switch (activation) {
    case Activation::gelu: return "gelu";
    case Activation::relu: return "relu";
    case Activation::silu: return "silu";
    case Activation::squared_relu: return "relu2";
  }
  return "";
}

double read_rate(const Document& value) {
  const double rate = value.is_number() ? value.as_real() : -1.0;
  if (rate < 0.0 || rate >= 1.0) {
    value.complain("a rate from 0 to 1");
  }
  return rate;
}

std::int64_t read_size(const Document& value, std::int64_t most) {
  if (value.as_positive_int() > most) {
    value.complain(fmt::format("a positive integer up to {}", most));
  }
  return value.as_positive_int();
}

}  // namespace

const Document* ConfigReader::look_up(std::string_view key) const {
  const Document* value = &config_;
  while (value != nullptr) {
    const std::size_t dot = key.find('.');
    value = value->find(key.substr(0, dot));
    if (dot == std::string_view::npos || (value != nullptr && value->is_null())) {
      break;
    }
    key.remove_prefix(dot + 1);
  }
  return value;
}

const Document* ConfigReader::find(Keys keys) {
  for (const std::string_view key : keys) {
    const Document* value = look_up(key);
    if (value != nullptr && !value->is_null()) {
      return value;
    }
  }
  for (const std::string_view key : keys) {
    if (look_up(key) == nullptr) {
      absent_.emplace_back(key);
    }
  }
  return nullptr;
}

void ConfigReader::ignore(Keys keys) {
  for (const std::string_view key : keys) {
    if (const Document* value = look_up(key)) {
      value->mark_used();
    }
  }
}

std::string_view ConfigReader::spelling(Keys keys) const {
  for (const std::string_view key : keys) {
    if (look_up(key) != nullptr) {
      return key;
    }
  }
  return *keys.begin();
}

const Document& ConfigReader::require(Keys keys) {
  if (const Document* value = find(keys)) {
    return *value;
  }
  const std::string_view key = spelling(keys);
  if (const Document* null = look_up(key)) {
    return *null;
  }
  missing(key);
}

void ConfigReader::missing(std::string_view key) const {
  throw InputError(fmt::format("{}: {}: missing key", config_.where(), key));
}

std::int64_t ConfigReader::size(Keys keys, std::int64_t most) {
  return read_size(require(keys), most);
}

std::int64_t ConfigReader::size_or(Keys keys, std::int64_t otherwise, std::int64_t most) {
  const Document* value = find(keys);
  return value == nullptr ? otherwise : read_size(*value, most);
}

std::int64_t ConfigReader::size_or_assume(Keys keys,
                                          std::int64_t otherwise,
                                          std::int64_t most,
                                          std::string_view why) {
  if (const Document* value = find(keys)) {
    return read_size(*value, most);
  }
  warn(fmt::format("{}: missing; assumed {}, {}", *keys.begin(), otherwise, why));
  return otherwise;
}

bool ConfigReader::flag(Keys keys, bool otherwise) {
  const Document* value = find(keys);
  return value == nullptr ? otherwise : value->as_bool();
}

double ConfigReader::rate(Keys keys) {
  const Document* value = find(keys);
  return value == nullptr ? 0.0 : read_rate(*value);
}

double ConfigReader::rate_or_assume(Keys keys, double otherwise) {
  if (const Document* value = find(keys)) {
    return read_rate(*value);
  }
  warn(fmt::format("{}: missing; assumed {}, the default of Hugging Face's configuration class",
                   *keys.begin(),
                   otherwise));
  return otherwise;
}

Activation ConfigReader::activation(Keys keys, Activation otherwise) {
  const Document* value = find(keys);
  if (value == nullptr) {
    warn(fmt::format("{}: missing; assumed {}, the default of Hugging Face's configuration class",
                     *keys.begin(),
                     name_of(otherwise)));
    return otherwise;
  }
  const auto activation = activation_of(value->as_text());
  if (!activation) {
    value->complain("gelu, gelu_new, gelu_pytorch_tanh, relu, relu2 or silu");
  }
  return *activation;
}

std::string ConfigReader::text_or(Keys keys, std::string_view otherwise) {
  const Document* value = find(keys);
  return value == nullptr ? std::string(otherwise) : value->as_text();
}

void ConfigReader::require_multiple(Keys whole_keys,
                                    std::int64_t whole,
                                    Keys part_keys,
                                    std::int64_t part) {
  if (whole % part != 0) {
    throw InputError(fmt::format("{}: {}: expected a multiple of {} = {}, found {}",
                                 config_.where(),
                                 spelling(whole_keys),
                                 spelling(part_keys),
                                 part,
                                 whole));
  }
}

std::vector<std::string> ConfigReader::finish() {
  const std::vector<std::string> unread = config_.unused();
  refuse_non_finite(config_);
  for (const Unmodelled& key : unmodelled) {
    const Document* value = look_up(key.key);
    if (value != nullptr && !is_off(*value)) {
      warn(fmt::format("{}: has no effect; {}", key.key, key.consequence));
    }
  }
  for (const std::string& path : unread) {
    const auto is_path = [&](const Unmodelled& key) { return key.key == path; };
    if (contains(without_cost, path) || std::ranges::any_of(unmodelled, is_path)) {
      continue;
    }
    const auto near = nearest_name(path, absent_);
    if (const Document* value = look_up(path); !near && value != nullptr && is_off(*value)) {
      continue;
    }
    warn(fmt::format("{}: has no effect{}", path, near ? "; did you mean " + *near + "?" : ""));
  }
  return std::exchange(warnings_, {});
}

}  // namespace core

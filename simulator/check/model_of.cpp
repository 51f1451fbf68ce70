#include "simulator/check/model_of.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/model/decoder.h"
#include "core/model/deepseek.h"
#include "core/model/experts.h"

namespace simulator {

namespace {

using core::Activation;
using core::Decoder;
using core::MeasuredRun;

// What a family's blocks have that tables do not say. Norm, gate, activation and tied tables stand
// for columns that are empty.
struct Family {
  std::string_view name;
  bool learned_positions = false, alibi = false;
  bool attention_bias = false, mlp_bias = false, norm_bias = false;
  Decoder::QkNorm qk_norm = Decoder::QkNorm::none;
  bool sinks = false, expert_bias = false, selection_bias = false;
  bool rms = true, gated = true, tied = false;
  Activation activation = Activation::silu;
  double dropout = 0.0;
};

constexpr Family megatron_gpt = {.name = "gpt",
                                 .learned_positions = true,
                                 .attention_bias = true,
                                 .mlp_bias = true,
                                 .norm_bias = true,
                                 .rms = false,
                                 .gated = false,
                                 .tied = true,
                                 .activation = Activation::gelu,
                                 .dropout = 0.1};

constexpr Family gpt(std::string_view name) {
  Family family = megatron_gpt;
  family.name = name;
  return family;
}

// Each as the file of core/model/families that reads its configurations; nemotron3 is the dense one
// of NeMo's launcher (8B, 22B), built as Nemotron-4.
constexpr std::array families = {
    gpt("gpt3"),
    gpt("gpt2"),
    gpt("gpt3 (BLOOM-like)"),
    Family{.name = "mpt",
           .learned_positions = true,
           .rms = false,
           .gated = false,
           .tied = true,
           .activation = Activation::gelu},
    Family{.name = "llama"},
    Family{.name = "llama2"},
    Family{.name = "llama3"},
    Family{.name = "grok1"},
    Family{.name = "nemotron3",
           .norm_bias = true,
           .rms = false,
           .gated = false,
           .activation = Activation::squared_relu},
    Family{.name = "nemotron4",
           .norm_bias = true,
           .rms = false,
           .gated = false,
           .activation = Activation::squared_relu},
    Family{.name = "qwen3_moe", .qk_norm = Decoder::QkNorm::per_head},
    Family{.name = "gpt_oss", .attention_bias = true, .sinks = true, .expert_bias = true},
    Family{.name = "deepseek_v3", .selection_bias = true},
};

// vTrain's models are those of Megatron-LM's GPT; so are the functional tests', whose arguments say
// where they differ.
const Family& family_of(const MeasuredRun& run) {
  if (run.model_family.empty()) return megatron_gpt;
  for (const auto& family : families) {
    if (family.name == run.model_family) return family;
  }
  throw core::InputError(fmt::format(
      "model_family {}: its blocks are not known from the columns of a table", run.model_family));
}

std::int64_t size(const MeasuredRun::Count& value, std::string_view name, std::int64_t most) {
  if (!value) throw core::InputError(fmt::format("{} is not stated", name));
  if (*value < 1 || *value > most)
    throw core::InputError(fmt::format("{} {}: expected 1 to {}", name, *value, most));
  return *value;
}

std::int64_t vocabulary(const MeasuredRun& run, Notes& notes) {
  if (run.padded_vocab) return size(run.padded_vocab, "padded_vocab", core::Largest::vocab);
  if (run.vocab) return size(run.vocab, "vocab", core::Largest::vocab);
  if (run.iteration_time_ms) {
    // vTrain (Bang et al., MICRO 2024) states none; Megatron-LM's GPTs have GPT-2's, padded.
    notes.assume("vocabulary 51200, GPT-2's as Megatron-LM pads it");
    return 51200;
  }
  throw core::InputError("the vocabulary is not stated");
}

Activation activation_of(const MeasuredRun& run, const Family& family, Notes& notes) {
  const std::string& name = run.activation;
  if (name.empty()) return family.activation;
  if (name == "gelu" || name == "geglu") return Activation::gelu;
  if (name == "squared_relu") return Activation::squared_relu;
  if (name == "swiglu (clamped)") notes.ignore("the clamp of the gated activation");
  if (name.starts_with("swiglu")) return Activation::silu;
  throw core::InputError(
      fmt::format("activation {}: expected gelu, geglu, swiglu or squared_relu", name));
}

void take_norm(const MeasuredRun& run, const Family& family, Decoder& d) {
  d.norm.rms = run.norm.empty() ? family.rms : run.norm == "rmsnorm";
  d.norm.bias = !d.norm.rms && family.norm_bias;
}

// Megatron-LM's options come in two sets: those of GPT, and those of Llama that switch biases and
// learned positions off.
void take_positions(const MeasuredRun& run, const Family& family, Decoder& d, Notes& notes) {
  const bool llama_options = !run.test_case.empty() && (d.norm.rms || d.gated);
  const bool like_llama = run.linear_bias ? !*run.linear_bias : llama_options;
  if (!run.test_case.empty() && !run.linear_bias) {
    notes.assume(
        like_llama
            ? "rotary positions and no biases, as RMSNorm or a gate stand for Llama's arguments"
            : "learned positions and biases, Megatron-LM's defaults");
  }
  d.rope = run.positions.empty() ? like_llama || !family.learned_positions
                                 : run.positions != "learned_absolute";
  d.learned_positions = d.rope ? 0 : d.max_positions;
  d.qkv_bias = d.out_bias = family.attention_bias && !like_llama;
  d.up_bias = d.down_bias = family.mlp_bias && !like_llama;
}

Decoder sizes_of(const MeasuredRun& run, const Family& family, Notes& notes) {
  Decoder d;
  d.hidden = size(run.hidden, "hidden", core::Largest::hidden);
  d.layers = size(run.layers, "layers", core::Largest::layers);
  d.vocab = vocabulary(run, notes);
  d.heads = size(run.heads, "heads", core::Largest::heads);
  d.kv_heads = run.kv_heads ? size(run.kv_heads, "kv_heads", core::Largest::heads) : d.heads;
  if (d.heads % d.kv_heads != 0)
    throw core::InputError(
        fmt::format("{} heads do not divide by {} key-value heads", d.heads, d.kv_heads));
  if (!run.head_dim && d.hidden % d.heads != 0) {
    throw core::InputError(fmt::format(
        "hidden {} does not divide by {} heads, and head_dim is not stated", d.hidden, d.heads));
  }
  d.head_dim =
      run.head_dim ? size(run.head_dim, "head_dim", core::Largest::head_dim) : d.hidden / d.heads;
  d.max_positions = size(run.seq_len, "seq_len", core::Largest::positions);
  d.gated = run.gated_mlp.value_or(run.swiglu.value_or(family.gated));
  d.activation = activation_of(run, family, notes);
  d.tied = run.tied_embeddings.value_or(family.tied);
  d.hidden_dropout = d.attention_dropout = run.dropout.value_or(family.dropout);
  if (d.hidden_dropout > 1.0)
    throw core::InputError(fmt::format("dropout {}: expected a rate of 0 to 1", d.hidden_dropout));
  take_norm(run, family, d);
  take_positions(run, family, d, notes);
  const bool normed = run.test_case.find("qk_layernorm") != std::string::npos;
  d.qk_norm = normed ? Decoder::QkNorm::per_head : family.qk_norm;
  d.attention_sinks = family.sinks;
  return d;
}

bool has_experts(const MeasuredRun& run) { return run.experts.value_or(0) > 0; }

std::int64_t dense_ffn(const MeasuredRun& run, std::int64_t hidden) {
  if (run.dense_ffn_hidden)
    return size(run.dense_ffn_hidden, "dense_ffn_hidden", core::Largest::ffn);
  if (run.ffn_hidden) return size(run.ffn_hidden, "ffn_hidden", core::Largest::ffn);
  if (run.iteration_time_ms || !run.test_case.empty()) return 4 * hidden;  // Megatron-LM's default
  throw core::InputError("ffn_hidden is not stated");
}

core::Experts experts_of(const MeasuredRun& run,
                         const Family& family,
                         const Decoder& d,
                         Notes& notes) {
  core::Experts e;
  e.count = size(run.experts, "experts", core::Largest::experts);
  e.top_k = size(run.top_k, "top_k", e.count);
  e.ffn = run.moe_ffn_hidden ? size(run.moe_ffn_hidden, "moe_ffn_hidden", core::Largest::ffn)
          : run.ffn_hidden   ? size(run.ffn_hidden, "ffn_hidden", core::Largest::ffn)
                             : 4 * d.hidden;
  e.gated = d.gated;
  e.activation = d.activation;
  e.bias = family.expert_bias || (d.up_bias && !run.test_case.empty());
  e.router_bias = family.expert_bias;
  e.selection_bias = family.selection_bias;
  const double shared = run.shared_experts.value_or(0.0);
  if (shared > 1024.0)
    throw core::InputError(fmt::format("shared_experts {}: expected 1024 at most", shared));
  e.shared_ffn = std::llround(shared * static_cast<double>(e.ffn));
  // DeepSeek-V3's tokens go to 4 of 8 groups of experts at most (arXiv 2412.19437, section 2.1.2);
  // Kimi K2's are not limited.
  if (family.selection_bias && e.count == 256) {
    e.groups = 8, e.groups_per_token = 4;
    notes.assume("a token's experts come from 4 of 8 groups");
  }
  return e;
}

core::LatentAttention latent_of(const MeasuredRun& run, const Decoder& d) {
  core::LatentAttention a;
  a.heads = d.heads;
  a.q_rank = run.q_lora.value_or(0);
  a.kv_rank = size(run.kv_lora, "kv_lora", core::Largest::hidden);
  a.nope_dim = size(run.qk_nope, "qk_nope", core::Largest::head_dim);
  a.rope_dim = size(run.qk_rope, "qk_rope", core::Largest::head_dim);
  a.v_dim = size(run.v_dim, "v_dim", core::Largest::head_dim);
  return a;
}

// "128 on every second layer"; gpt-oss begins with a window.
std::int64_t window_of(const MeasuredRun& run, std::int64_t layer) {
  if (run.sliding_window.empty()) return 0;
  std::int64_t window = 0;
  const char* const end = run.sliding_window.data() + run.sliding_window.size();
  const auto read = std::from_chars(run.sliding_window.data(), end, window);
  const std::string_view rest(read.ptr, static_cast<std::size_t>(end - read.ptr));
  if (read.ec != std::errc() || window < 1 || (!rest.empty() && rest != " on every second layer")) {
    throw core::InputError(
        fmt::format("sliding_window {}: expected tokens, or tokens \"on every second layer\"",
                    run.sliding_window));
  }
  return rest.empty() || layer % 2 == 0 ? window : 0;
}

std::vector<core::Layer> layers_of(const MeasuredRun& run,
                                   const Family& family,
                                   const Decoder& d,
                                   Notes& notes) {
  const std::int64_t first_sparse = run.first_dense_layers.value_or(0);
  std::optional<core::Block> moe;
  if (has_experts(run)) moe = core::moe_block(experts_of(run, family, d, notes));
  std::vector<core::Layer> layers;
  for (std::int64_t i = 0; i < d.layers; ++i) {
    const std::int64_t window = window_of(run, i);
    const bool sparse = moe.has_value() && i >= first_sparse;
    const auto mixer =
        run.kv_lora ? core::mla_block(latent_of(run, d)) : core::attention_block(d, window);
    layers.push_back(core::decoder_layer(
        d,
        fmt::format("decoder{}{}", window > 0 ? "-local" : "", sparse ? "-moe" : ""),
        mixer,
        sparse ? *moe : core::mlp_block(d)));
  }
  return layers;
}

}  // namespace

core::ModelSpec model_of(const MeasuredRun& run, Notes& notes) {
  const Family& family = family_of(run);
  Decoder d = sizes_of(run, family, notes);
  d.ffn =
      has_experts(run) && run.first_dense_layers.value_or(0) == 0 ? 1 : dense_ffn(run, d.hidden);
  const auto layers = layers_of(run, family, d, notes);
  const auto modules = run.mtp_layers.value_or(0);
  if (modules > 64)
    throw core::InputError(fmt::format("mtp_layers {}: expected 64 at most", modules));
  const std::vector<core::Layer> mtp(static_cast<std::size_t>(modules),
                                     core::mtp_module(d, layers.back()));
  const auto nothing = core::Document::parse_json("{}", run.id);
  core::ConfigReader reader(nothing);
  auto model = core::decoder_spec(d, layers, reader, mtp);
  model.name = run.model_name.empty() ? run.id : run.model_name;
  model.family = family.name;
  return model;
}

}  // namespace simulator

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <system_error>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/model/model.h"

namespace core {
namespace {

// What a configuration may be, and the bit of ModelFamily::reads that takes it; 0: nobody does.
struct Kind {
  std::string_view what;
  unsigned bit = 0;
};

constexpr Kind moe{"a mixture-of-experts model", ModelFamily::experts};
constexpr Kind mla{"a model with multi-head latent attention", ModelFamily::latent};
constexpr Kind hybrid{"a hybrid or state-space model", ModelFamily::linear};
constexpr Kind recurrent{"a recurrent model"};
constexpr Kind encoder_decoder{"an encoder-decoder model"};
constexpr Kind encoder{"an encoder"};

struct Trait {
  std::string_view sign;
  Kind kind;
};

// Keys that only such models have (with a value other than null, false, 0 and 1).
constexpr Trait telling_keys[] = {
    {"num_local_experts", moe},
    {"num_experts", moe},
    {"n_routed_experts", moe},
    {"moe_num_experts", moe},
    {"num_moe_experts", moe},
    {"moe_intermediate_size", moe},
    {"hybrid_override_pattern", hybrid},
    {"linear_num_key_heads", hybrid},
    {"linear_attn_config", hybrid},
    {"mamba_d_state", hybrid},
    {"mamba_num_heads", hybrid},
    {"ssm_state_size", hybrid},
    {"ssm_cfg", hybrid},
    {"state_size", hybrid},
    {"attn_layer_period", hybrid},
    {"layers_block_type", hybrid},
    {"block_types", hybrid},
    {"conv_L_cache", hybrid},
    {"kv_lora_rank", mla},
    {"q_lora_rank", mla},
    {"is_encoder_decoder", encoder_decoder},
};

// Beginnings of architectures and model types that no family has, for files whose keys do not tell.
constexpr Trait telling_names[] = {
    {"arctic", moe},
    {"deepseek_v", moe},
    {"grok", moe},
    {"jetmoe", moe},
    {"granitemoe", moe},
    {"mamba", hybrid},
    {"falconmamba", hybrid},
    {"falcon_mamba", hybrid},
    {"jamba", hybrid},
    {"zamba", hybrid},
    {"bamba", hybrid},
    {"recurrentgemma", hybrid},
    {"recurrent_gemma", hybrid},
    {"rwkv", recurrent},
    {"t5", encoder_decoder},
    {"mt5", encoder_decoder},
    {"umt5", encoder_decoder},
    {"bart", encoder_decoder},
    {"mbart", encoder_decoder},
    {"pegasus", encoder_decoder},
    {"whisper", encoder_decoder},
    {"bert", encoder},
    {"roberta", encoder},
    {"xlmroberta", encoder},
    {"deberta", encoder},
    {"electra", encoder},
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(
      out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// The first architecture of the file; "" when it has none.
std::string architecture_of(const Document& config) {
  const Document* names = config.find("architectures");
  if (names == nullptr || names->is_null() || names->as_list().empty()) {
    return {};
  }
  return names->as_list().front().as_text();
}

std::string model_type_of(const Document& config) {
  const Document* type = config.find("model_type");
  return type == nullptr || type->is_null() ? std::string() : type->as_text();
}

bool tells(const Document& value) {
  switch (value.kind()) {
    case Document::Kind::null:
      return false;
    case Document::Kind::boolean:
      return value.as_bool();
    case Document::Kind::integer:
      return value.as_int(std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::int64_t>::max()) > 1;
    default:
      return true;
  }
}

const Kind* kind_by_name(std::string_view name) {
  const std::string lowered = lower(name);
  for (const Trait& trait : telling_names) {
    if (lowered.starts_with(trait.sign)) {
      return &trait.kind;
    }
  }
  return nullptr;
}

bool has_linear_layers(const Document& config) {
  const Document* types = config.find("layer_types");
  return types != nullptr && types->is_list() && std::ranges::any_of(types->as_list(), [](const Document& type) {
    return type.kind() == Document::Kind::text && type.as_text() == "linear_attention";
  });
}

// The first kind that the keys tell of and that `read`, bits of ModelFamily::reads, does not take; none: null.
const Kind* unread_kind(const Document& config, unsigned read) {
  for (const Trait& trait : telling_keys) {
    const Document* value = config.find(trait.sign);
    if ((trait.kind.bit & read) == 0 && value != nullptr && tells(*value)) {
      return &trait.kind;
    }
  }
  return (hybrid.bit & read) == 0 && has_linear_layers(config) ? &hybrid : nullptr;
}

// The name that says what a configuration is: its architecture, else its model type.
std::string name_of_class(const Document& config) {
  std::string name = architecture_of(config);
  return name.empty() ? model_type_of(config) : name;
}

const ModelFamily* known_family(const Document& config) {
  const std::string architecture = architecture_of(config), type = model_type_of(config);
  for (const ModelFamily* family : families::all()) {
    const auto names = architecture.empty() ? family->model_types() : family->architectures();
    if (std::ranges::find(names, architecture.empty() ? type : architecture) != names.end()) {
      return family;
    }
  }
  return nullptr;
}

void refuse_unsupported(const Document& config) {
  const ModelFamily* family = known_family(config);
  const unsigned read = family == nullptr ? 0 : family->reads;
  const Kind* kind = unread_kind(config, read);
  if (const Document* text = config.find("text_config"); kind == nullptr && text != nullptr && text->is_object()) {
    kind = unread_kind(*text, read);
  }
  if (kind == nullptr && family == nullptr) {
    kind = kind_by_name(name_of_class(config));
  }
  if (kind == nullptr) {
    return;
  }
  const std::string name = name_of_class(config);
  throw InputError(fmt::format("{}: {} is {}, not supported yet",
                               config.where(),
                               name.empty() ? "this" : printable(name),
                               kind->what));
}

[[noreturn]] void unknown(const Document& config,
                          std::string_view key,
                          const std::string& found,
                          const std::vector<std::string>& known) {
  std::vector<std::string_view> names;
  for (const ModelFamily* family : families::all()) {
    names.push_back(family->name);
  }
  const auto near = nearest_name(found, known);
  throw InputError(fmt::format("{}: {}: \"{}\" is not known{}; known families: {}",
                               config.where(),
                               key,
                               printable(found),
                               near ? fmt::format("; did you mean {}?", *near) : "",
                               fmt::join(names, ", ")));
}

// The family that has `found` among its `names`.
const ModelFamily& family_named(const Document& config,
                                std::string_view key,
                                const std::string& found,
                                std::vector<std::string_view> (*ModelFamily::*names)()) {
  std::vector<std::string> known;
  for (const ModelFamily* family : families::all()) {
    for (const std::string_view name : (family->*names)()) {
      if (name == found) {
        return *family;
      }
      known.emplace_back(name);
    }
  }
  unknown(config, key, found, known);
}

const ModelFamily& family_of(const Document& config) {
  if (const std::string architecture = architecture_of(config); !architecture.empty()) {
    return family_named(config, "architectures", architecture, &ModelFamily::architectures);
  }
  if (const std::string type = model_type_of(config); !type.empty()) {
    return family_named(config, "model_type", type, &ModelFamily::model_types);
  }
  throw InputError(fmt::format("{}: architectures: missing key", config.where()));
}

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".json");
}

// "llama.json" and "llama/config.json" are both called llama.
std::string name_of(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  const std::string folder = file.parent_path().filename().string();
  return stem == "config" && !folder.empty() ? folder : stem;
}

// A name of a model hub, "owner/Model-8B", is easily taken for one of ours.
[[noreturn]] void refuse_missing(const std::filesystem::path& file) {
  const auto near = nearest_name(lower(file.filename().string()), data_names("models"));
  throw InputError(fmt::format("--model {}: no such file{}",
                               printable(file.string(), 300),
                               near ? fmt::format("; did you mean {}?", *near) : ""));
}

}  // namespace

ModelSpec read_model_config(const Document& config, std::string name) {
  if (!config.is_object()) {
    config.complain("an object");
  }
  refuse_unsupported(config);
  const ModelFamily& family = family_of(config);
  ModelSpec model = family.read(config);
  model.name = std::move(name);
  model.family = family.name;
  return model;
}

ModelSpec load_model(std::string_view name_or_path) {
  if (!is_path(name_or_path)) {
    const std::filesystem::path file = data_file("models", name_or_path, "--model");
    return read_model_config(Document::read_json_file(file), std::string(name_or_path));
  }
  std::filesystem::path file(name_or_path);
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    file /= "config.json";
  }
  if (!std::filesystem::exists(file, ignored)) {
    refuse_missing(file);
  }
  return read_model_config(Document::read_json_file(file), name_of(file));
}

}  // namespace core

// What read_model_config accepts, assumes and refuses, and the words it does so in.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/error.h"
#include "core/model/model.h"

namespace core {
namespace {

using Config = std::map<std::string, std::string>;

Config llama() {
  return {{"architectures", R"(["LlamaForCausalLM"])"},
          {"hidden_size", "64"},
          {"num_hidden_layers", "2"},
          {"num_attention_heads", "8"},
          {"num_key_value_heads", "2"},
          {"intermediate_size", "128"},
          {"vocab_size", "100"},
          {"hidden_act", "\"silu\""}};
}

Config with(Config config, const std::string& key, const std::string& value) {
  config[key] = value;
  return config;
}

Config without(Config config, const std::string& key) {
  config.erase(key);
  return config;
}

ModelSpec read(const Config& config) {
  std::string text = "{";
  for (const auto& [key, value] : config) {
    text += fmt::format("{}\"{}\": {}", text.size() > 1 ? ",\n" : "", key, value);
  }
  return read_model_config(Document::parse_json(text + "}", "config.json"), "test");
}

std::string complaint(const Config& config) {
  try {
    read(config);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

// The warnings, one a line.
std::string warnings(const Config& config) {
  return fmt::format("{}", fmt::join(read(config).warnings, "\n"));
}

TEST(ModelConfig, ReadsACompleteFileWithoutAWord) {
  const ModelSpec model = read(llama());
  EXPECT_EQ(model.family, "llama");
  EXPECT_EQ(model.name, "test");
  EXPECT_EQ(model.layers(), 2);
  EXPECT_TRUE(model.warnings.empty());
}

TEST(ModelConfig, NamesTheKeyThatIsMissing) {
  for (const std::string key : {"hidden_size",
                                "num_hidden_layers",
                                "num_attention_heads",
                                "intermediate_size",
                                "vocab_size",
                                "architectures"}) {
    EXPECT_EQ(complaint(without(llama(), key)), "config.json: " + key + ": missing key");
  }
}

TEST(ModelConfig, RefusesValuesThatAreNotSizes) {
  const auto found = [](const std::string& value) {
    return complaint(with(llama(), "hidden_size", value));
  };
  const std::string expected = "config.json: hidden_size: expected a positive integer, found ";
  EXPECT_EQ(found("null"), expected + "null");
  EXPECT_EQ(found("\"64\""), expected + "\"64\"");
  EXPECT_EQ(found("Infinity"), expected + "Infinity");
  EXPECT_EQ(found("0"), expected + "0");
  EXPECT_EQ(found("-64"), expected + "-64");
  EXPECT_EQ(found("64.5"), expected + "64.5");
  EXPECT_EQ(found("[64]"), expected + "a list of 1");
  EXPECT_EQ(
      found("1099511627776"),
      "config.json: hidden_size: expected a positive integer up to 1048576, found 1099511627776");
}

TEST(ModelConfig, RefusesNumbersThatAreNotFiniteAnywhere) {
  EXPECT_EQ(complaint(with(llama(), "rope_theta", "Infinity")),
            "config.json: rope_theta: expected a finite number, found Infinity");
  EXPECT_EQ(complaint(with(llama(), "rope_scaling", R"({"factor": NaN})")),
            "config.json: rope_scaling.factor: expected a finite number, found NaN");
}

TEST(ModelConfig, RefusesSizesThatDoNotDivide) {
  EXPECT_EQ(complaint(with(llama(), "num_attention_heads", "6")),
            "config.json: hidden_size: expected a multiple of num_attention_heads = 6, found 64");
  EXPECT_EQ(
      complaint(with(llama(), "num_key_value_heads", "3")),
      "config.json: num_attention_heads: expected a multiple of num_key_value_heads = 3, found 8");
  // Heads of a stated width need not divide the hidden size.
  EXPECT_EQ(complaint(with(with(llama(), "num_attention_heads", "6"), "head_dim", "16")),
            "no complaint");
}

TEST(ModelConfig, SaysWhatItAssumes) {
  EXPECT_EQ(warnings(without(llama(), "num_key_value_heads")),
            "num_key_value_heads: missing; assumed 8, as many as num_attention_heads");
  EXPECT_EQ(warnings(with(llama(), "num_key_value_heads", "null")),
            "num_key_value_heads: null; assumed 8, as many as num_attention_heads");
  EXPECT_EQ(warnings(without(llama(), "hidden_act")),
            "hidden_act: missing; assumed silu, the default of Hugging Face's configuration class");
}

TEST(ModelConfig, WarnsOfKeysWithoutEffect) {
  EXPECT_EQ(warnings(with(llama(), "initializer_range", "0.02")), "");
  EXPECT_EQ(warnings(with(llama(), "my_flag", "false")), "");
  EXPECT_EQ(warnings(with(llama(), "my_flag", "3")), "my_flag: has no effect");
  EXPECT_EQ(warnings(with(llama(), "attention_biass", "false")),
            "attention_biass: has no effect; did you mean attention_bias?");
  EXPECT_EQ(
      warnings(with(llama(), "quantization_config", R"({"quant_method": "fp8"})")),
      "quantization_config: has no effect; the recipe says in which formats the model is trained");
}

TEST(ModelConfig, TakesTwoSpellingsOfOneSize) {
  const Config bloom = {{"architectures", R"(["BloomForCausalLM"])"},
                        {"hidden_size", "64"},
                        {"n_embed", "64"},
                        {"n_layer", "2"},
                        {"n_head", "8"},
                        {"vocab_size", "100"}};
  EXPECT_EQ(warnings(bloom), "");
  EXPECT_EQ(warnings(with(bloom, "n_embed", "32")), "n_embed: has no effect; hidden_size counts");
}

TEST(ModelConfig, NamesAnUnknownArchitectureAndTheNearestKnown) {
  const std::string message = complaint(with(llama(), "architectures", R"(["LlamaForCasualLM"])"));
  EXPECT_TRUE(
      message.starts_with("config.json: architectures: \"LlamaForCasualLM\" is not known; "
                          "did you mean LlamaForCausalLM?; known families: bloom, "))
      << message;
}

TEST(ModelConfig, FindsTheFamilyByModelTypeWhereNoArchitectureStands) {
  EXPECT_EQ(read(with(without(llama(), "architectures"), "model_type", "\"llama\"")).family,
            "llama");
}

TEST(ModelConfig, RefusesModelsThatAreNotDenseDecoders) {
  EXPECT_EQ(complaint(with(llama(), "num_local_experts", "8")),
            "config.json: LlamaForCausalLM is a mixture-of-experts model, not supported yet");
  EXPECT_EQ(complaint(with(llama(), "num_local_experts", "0")), "no complaint");
  EXPECT_EQ(complaint(with(llama(), "kv_lora_rank", "512")),
            "config.json: LlamaForCausalLM is a model with multi-head latent attention, not "
            "supported yet");
  EXPECT_EQ(complaint({{"architectures", R"(["MambaForCausalLM"])"}}),
            "config.json: MambaForCausalLM is a hybrid or state-space model, not supported yet");
  EXPECT_EQ(
      complaint({{"architectures", R"(["T5ForConditionalGeneration"])"}}),
      "config.json: T5ForConditionalGeneration is an encoder-decoder model, not supported yet");
  EXPECT_EQ(complaint({{"architectures", R"(["JetMoeForCausalLM"])"}}),
            "config.json: JetMoeForCausalLM is a mixture-of-experts model, not supported yet");
  EXPECT_EQ(complaint({{"architectures", R"(["Gemma3ForConditionalGeneration"])"},
                       {"text_config", R"({"num_local_experts": 16})"}}),
            "config.json: Gemma3ForConditionalGeneration is a mixture-of-experts model, not "
            "supported yet");
  // A family with experts is not one with linear layers.
  EXPECT_EQ(complaint({{"architectures", R"(["MixtralForCausalLM"])"}, {"mamba_d_state", "16"}}),
            "config.json: MixtralForCausalLM is a hybrid or state-space model, not supported yet");
}

Config mixtral() {
  Config config = llama();
  config["architectures"] = R"(["MixtralForCausalLM"])";
  config["num_local_experts"] = "8";
  config["num_experts_per_tok"] = "2";
  return config;
}

TEST(ModelConfig, NamesWhatAModelOfExpertsLacks) {
  EXPECT_EQ(complaint(mixtral()), "no complaint");
  EXPECT_EQ(warnings(mixtral()), "");
  for (const std::string key : {"num_local_experts", "num_experts_per_tok"}) {
    EXPECT_EQ(complaint(without(mixtral(), key)), "config.json: " + key + ": missing key");
  }
  EXPECT_EQ(complaint(with(mixtral(), "num_experts_per_tok", "9")),
            "config.json: num_experts_per_tok: expected at most num_local_experts = 8, found 9");
  EXPECT_EQ(complaint({{"model_type", "\"deepseek_v3\""}}), "config.json: hidden_size: missing key");
}

Config deepseek() {
  return {{"architectures", R"(["DeepseekV3ForCausalLM"])"},
          {"hidden_size", "64"},
          {"num_hidden_layers", "3"},
          {"num_attention_heads", "4"},
          {"intermediate_size", "128"},
          {"moe_intermediate_size", "32"},
          {"n_routed_experts", "16"},
          {"num_experts_per_tok", "4"},
          {"n_shared_experts", "1"},
          {"n_group", "4"},
          {"topk_group", "2"},
          {"first_k_dense_replace", "1"},
          {"kv_lora_rank", "16"},
          {"qk_nope_head_dim", "8"},
          {"qk_rope_head_dim", "4"},
          {"v_head_dim", "8"},
          {"vocab_size", "100"},
          {"hidden_act", "\"silu\""}};
}

TEST(ModelConfig, ReadsDeepseeksGroupsAndFirstDenseLayers) {
  const ModelSpec model = read(deepseek());
  EXPECT_EQ(model.layer(0).blocks[3].kind, "mlp");
  EXPECT_EQ(model.layer(1).blocks[3].kind, "moe");
  EXPECT_EQ(model.layer(1).blocks[3].shape.at("groups"), 4);
  EXPECT_EQ(model.layer(1).blocks[3].shape.at("groups_per_token"), 2);
  EXPECT_EQ(model.layer(1).blocks[1].shape.at("q_rank"), 0);
  EXPECT_TRUE(model.mtp.empty());
  EXPECT_EQ(complaint(with(deepseek(), "topk_group", "5")),
            "config.json: topk_group: expected at most n_group = 4, found 5");
  EXPECT_EQ(complaint(with(deepseek(), "n_group", "3")),
            "config.json: n_routed_experts: expected a multiple of n_group = 3, found 16");
  EXPECT_EQ(complaint(without(deepseek(), "kv_lora_rank")), "config.json: kv_lora_rank: missing key");
  EXPECT_EQ(complaint(with(deepseek(), "topk_method", "\"best\"")),
            "config.json: topk_method: expected greedy, group_limited_greedy or noaux_tc, found \"best\"");
}

// DeepSeek-V3, arXiv 2412.19437, section 2.2: each module has a projection of 2 h, a layer, and shares the tables.
TEST(ModelConfig, ReadsModulesThatPredictFurtherTokens) {
  const ModelSpec model = read(with(deepseek(), "num_nextn_predict_layers", "2"));
  ASSERT_EQ(model.mtp.size(), 2U);
  const ParameterCount count = count_parameters(model), without = count_parameters(read(deepseek()));
  EXPECT_EQ(count.total, without.total);
  std::int64_t layer = 0;
  for (const Tensor& tensor : tensors_of(model.layer(2).blocks, model)) layer += tensor.numel();
  EXPECT_EQ(count.mtp, 2 * (layer + 2 * 64 * 64 + 3 * 64));
}

TEST(ModelConfig, RefusesLayersOfKimiLinearThatDoNotAddUp) {
  Config kimi = deepseek();
  kimi["architectures"] = R"(["KimiLinearForCausalLM"])";
  kimi["num_experts"] = "16";
  kimi["num_experts_per_token"] = "4";
  const auto layers = [&](const std::string& kda, const std::string& full) {
    return complaint(with(kimi,
                          "linear_attn_config",
                          R"({"num_heads": 4, "head_dim": 8, "short_conv_kernel_size": 4, "kda_layers": )" +
                              kda + R"(, "full_attn_layers": )" + full + "}"));
  };
  EXPECT_EQ(layers("[1, 2]", "[3]"), "no complaint");
  const std::string expected =
      "config.json: expected linear_attn_config.kda_layers and full_attn_layers to name each layer from 1 to 3 once";
  EXPECT_EQ(layers("[1]", "[3]"), expected);
  EXPECT_EQ(layers("[1, 2, 3]", "[3]"), expected);
}

TEST(ModelConfig, RefusesAPatternOfNemotronHThatDoesNotFit) {
  const Config nemotron = {{"architectures", R"(["NemotronHForCausalLM"])"},
                           {"hidden_size", "64"},
                           {"num_hidden_layers", "3"},
                           {"num_attention_heads", "4"},
                           {"num_key_value_heads", "2"},
                           {"attention_head_dim", "16"},
                           {"intermediate_size", "128"},
                           {"vocab_size", "100"},
                           {"mlp_hidden_act", "\"relu2\""},
                           {"mamba_num_heads", "8"},
                           {"mamba_head_dim", "16"},
                           {"n_groups", "2"},
                           {"ssm_state_size", "16"},
                           {"conv_kernel", "4"},
                           {"time_step_limit", "[0.0, Infinity]"},
                           {"hybrid_override_pattern", "\"M-*\""}};
  EXPECT_EQ(complaint(nemotron), "no complaint");
  EXPECT_EQ(complaint(with(nemotron, "hybrid_override_pattern", "\"M-\"")),
            "config.json: hybrid_override_pattern: expected as many letters as num_hidden_layers = 3, found \"M-\"");
  EXPECT_EQ(complaint(with(nemotron, "hybrid_override_pattern", "\"M-E\"")),
            "config.json: hybrid_override_pattern: expected the letters M, * and -, found \"M-E\"");
}

TEST(ModelConfig, RefusesAFalconThatDoesNotSayHowManyKeyHeads) {
  const Config falcon = {{"architectures", R"(["RWForCausalLM"])"},
                         {"hidden_size", "128"},
                         {"n_head", "8"},
                         {"n_layer", "2"},
                         {"vocab_size", "100"}};
  EXPECT_EQ(complaint(falcon), "config.json: multi_query: missing key");
  EXPECT_EQ(read(with(falcon, "multi_query", "true")).kinds[0].blocks[1].shape.at("kv_heads"), 1);
  EXPECT_EQ(read(with(falcon, "n_head_kv", "4")).kinds[0].blocks[1].shape.at("kv_heads"), 4);
}

// OPT-350m: word vectors of 512 in a model of 1024, norms after the blocks, none at the end.
TEST(ModelConfig, ReadsNarrowWordVectorsOfOpt) {
  const ModelSpec model = read({{"architectures", R"(["OPTForCausalLM"])"},
                                {"hidden_size", "1024"},
                                {"word_embed_proj_dim", "512"},
                                {"num_hidden_layers", "24"},
                                {"num_attention_heads", "16"},
                                {"ffn_dim", "4096"},
                                {"max_position_embeddings", "2048"},
                                {"vocab_size", "50272"},
                                {"activation_function", "\"relu\""},
                                {"do_layer_norm_before", "false"},
                                {"dropout", "0.1"}});
  const std::int64_t h = 1024;
  const std::int64_t layer = 12 * h * h + 13 * h;
  const std::int64_t tables = 50272 * 512 + 2050 * h;
  EXPECT_EQ(count_parameters(model).total, 24 * layer + tables + 2 * 512 * h);
}

TEST(ModelConfig, ReadsLayerTypes) {
  Config gemma = llama();
  gemma["architectures"] = R"(["Gemma2ForCausalLM"])";
  gemma["head_dim"] = "8";
  gemma["sliding_window"] = "16";
  gemma["layer_types"] = R"(["full_attention", "sliding_attention"])";
  const ModelSpec model = read(gemma);
  EXPECT_EQ(model.layer(0).blocks[1].shape.at("window"), 0);
  EXPECT_EQ(model.layer(1).blocks[1].shape.at("window"), 16);
  EXPECT_EQ(
      complaint(with(gemma, "layer_types", R"(["full_attention"])")),
      "config.json: layer_types: expected as many as num_hidden_layers = 2, found a list of 1");
  EXPECT_EQ(complaint(with(gemma, "layer_types", R"(["full_attention", "chunked"])")),
            "config.json: layer_types[1]: expected full_attention or sliding_attention, found "
            "\"chunked\"");
}

TEST(LoadModel, SuggestsNamesAndNamesMissingFiles) {
  const auto message = [](std::string_view name) -> std::string {
    try {
      load_model(name);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no complaint";
  };
  EXPECT_EQ(message("lama-3.1-8b"), "--model lama-3.1-8b: not known; did you mean llama-3.1-8b?");
  EXPECT_EQ(message("meta-llama/Llama-3.1-8B"),
            "--model meta-llama/Llama-3.1-8B: no such file; did you mean llama-3.1-8b?");
  EXPECT_EQ(message("/nowhere/config.json"), "--model /nowhere/config.json: no such file");
}

}  // namespace
}  // namespace core

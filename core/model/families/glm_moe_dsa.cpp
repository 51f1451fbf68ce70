#include "core/model/deepseek.h"

namespace core::families {
namespace {

// GLM-5: DeepSeek-V3.2's keys and blocks.
ModelSpec read(const Document& config) { return read_deepseek(config, {.selection_bias = true, .indexer = true}); }

}  // namespace

extern const ModelFamily glm_moe_dsa;
const ModelFamily glm_moe_dsa = {
    .name = "glm_moe_dsa",
    .architectures =
        [] {
          return std::vector<std::string_view>{"GlmMoeDsaForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"glm_moe_dsa"};
        },
    .read = read,
    .reads = ModelFamily::experts | ModelFamily::latent,
};

}  // namespace core::families

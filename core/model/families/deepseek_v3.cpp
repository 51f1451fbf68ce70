#include "core/model/deepseek.h"

namespace core::families {
namespace {

// DeepSeek-V3 and R1, Kimi K2: as V2, with a bias that balances the experts' load and modules that predict further tokens.
ModelSpec read(const Document& config) { return read_deepseek(config, {.selection_bias = true}); }

}  // namespace

extern const ModelFamily deepseek_v3;
const ModelFamily deepseek_v3 = {
    .name = "deepseek_v3",
    .architectures =
        [] {
          return std::vector<std::string_view>{"DeepseekV3ForCausalLM", "KimiK2ForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"deepseek_v3", "kimi_k2"};
        },
    .read = read,
    .reads = ModelFamily::experts | ModelFamily::latent,
};

}  // namespace core::families

#include "core/model/deepseek.h"

namespace core::families {
namespace {

// DeepSeek-V3.2: as V3, with an indexer that chooses the keys of each query.
ModelSpec read(const Document& config) { return read_deepseek(config, {.selection_bias = true, .indexer = true}); }

}  // namespace

extern const ModelFamily deepseek_v32;
const ModelFamily deepseek_v32 = {
    .name = "deepseek_v32",
    .architectures =
        [] {
          return std::vector<std::string_view>{"DeepseekV32ForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"deepseek_v32"};
        },
    .read = read,
    .reads = ModelFamily::experts | ModelFamily::latent,
};

}  // namespace core::families

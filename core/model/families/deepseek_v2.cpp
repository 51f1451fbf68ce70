#include "core/model/deepseek.h"

namespace core::families {
namespace {

// DeepSeek-V2: latent attention, experts chosen by softmax, at most by groups.
ModelSpec read(const Document& config) { return read_deepseek(config, {}); }

}  // namespace

extern const ModelFamily deepseek_v2;
const ModelFamily deepseek_v2 = {
    .name = "deepseek_v2",
    .architectures =
        [] {
          return std::vector<std::string_view>{"DeepseekV2ForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"deepseek_v2"};
        },
    .read = read,
    .reads = ModelFamily::experts | ModelFamily::latent,
};

}  // namespace core::families

// Any bytes as a model configuration: read in full, or refused in one line by an InputError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/model/model.h"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void read(std::string_view text) {
  const core::Document config = core::Document::parse_json(text, "config.json");
  const core::ModelSpec model = core::read_model_config(config, "fuzz");
  const core::ParameterCount count = core::count_parameters(model);
  require(count.total > 0 && count.active > 0 && count.active <= count.total && count.mtp >= 0);
  require(core::flops_per_token_forward(model, 4096) > 0.0);
  require(core::kv_cache_bytes_per_token(model) >= 0.0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    read({reinterpret_cast<const char*>(data), size});
  } catch (const core::InputError& error) {
    require(std::string_view(error.what()).find_first_of("\n\r\x1b") == std::string_view::npos);
  }
  return 0;
}

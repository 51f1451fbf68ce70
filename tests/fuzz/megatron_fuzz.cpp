// Any bytes as a log of Megatron-LM, and as the arguments of one of its tests: read, or refused in
// one line by an InputError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "core/error.h"
#include "core/logs/megatron.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read(const std::function<core::MegatronRun()>& parse) {
  try {
    const auto run = core::measured_run_of(parse(), {"h100-sxm", {}, {}});
    require(run.gpus.has_value() && run.id == "run");
  } catch (const core::InputError& error) {
    require(std::string_view(error.what()).find_first_of("\n\r\x1b") == std::string_view::npos);
  }
}

constexpr std::string_view golden = R"({"iteration-time": {"values": {"1": 1.5}}})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  read([&] { return core::parse_megatron_log(text, "run"); });
  read([&] { return core::parse_megatron_golden(golden, "run", text, "arguments"); });
  read([&] { return core::parse_megatron_golden(text, "run", "--num-layers: 2", "arguments"); });
  return 0;
}

// Any bytes as a table of measured runs: read in full, or refused in one line by an InputError; its
// first rows in our terms or refused likewise.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/measured/table.h"
#include "simulator/check/translate.h"

namespace {

constexpr std::size_t most_rows = 4;

void require(bool condition) {
  if (!condition) std::abort();
}

void require_one_line(const core::InputError& error) {
  require(std::string_view(error.what()).find_first_of("\n\r\x1b") == std::string_view::npos);
}

void translate(const core::MeasuredRun& run) {
  try {
    const auto translation = simulator::translate(run);
    require(translation.plan.gpus() == translation.setting.gpus);
  } catch (const core::InputError& error) {
    require_one_line(error);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto table =
        core::parse_measured_table({reinterpret_cast<const char*>(data), size}, "runs.csv");
    for (std::size_t i = 0; i < std::min(most_rows, table.runs.size()); ++i)
      translate(table.runs[i]);
  } catch (const core::InputError& error) {
    require_one_line(error);
  }
  return 0;
}

// Any bytes as a file of runs, a table or a log: read so that every wanted value is finite and
// every row has all of its columns, or refused in one line by an InputError.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/logs/observations.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void require_one_line(std::string_view text) {
  require(text.find_first_of("\n\r\x1b") == std::string_view::npos);
}

void check(const core::Observations& runs, std::size_t wanted) {
  require(runs.values.size() == runs.variables.size() && runs.variables.size() >= wanted);
  for (std::size_t v = 0; v < runs.values.size(); ++v) {
    require(runs.values[v].size() == runs.size());
    for (const double value : runs.values[v]) require(std::isfinite(value) || v >= wanted);
  }
  for (const auto& row : runs.rows) require_one_line(row);
  for (const auto& note : runs.notes) require_one_line(note);
  for (const auto& [row, why] : runs.dropped) {
    require_one_line(row + why);
    require(!why.empty());
  }
}

void read(const std::string& text,
          const std::string& name,
          const core::ObservationOptions& options) {
  try {
    check(core::parse_observations(text, name, options), options.wanted.size());
  } catch (const core::InputError& error) {
    require_one_line(error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{reinterpret_cast<const char*>(data), size};
  core::ObservationOptions options;
  options.wanted = {"N", "D", "L"};
  read(text, "runs.csv", options);
  options.N = 1e9, options.tokens_per_step = 1e6;
  options.keep_diverged = options.keep_unfinished = options.keep_duplicates = true;
  options.columns = {{"L", "loss"}};
  options.also = {"U", "bits_w", "lr"};
  options.where = {"split!=train", "step>=0"};
  read(text, "a-1B.log", options);
  return 0;
}

// Any bytes as a schedule table: read and written back equal, or refused in one line by an InputError; what is said to run runs
// through, and nothing is in flight that does not visit a stage.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/plan/ideal_run.h"
#include "core/plan/schedule.h"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

bool is_one_line(std::string_view text) { return text.find_first_of("\n\r\x1b") == std::string_view::npos; }

void check(const core::ScheduleTable& table) {
  require(core::parse_schedule(core::to_text(table)) == table);
  if (const auto reason = core::why_not_executable(table)) {
    require(!reason->empty() && is_one_line(*reason));
    return;
  }
  const auto most = core::most_in_flight(table);
  for (std::int64_t s = 0; s < table.stages(); ++s) {
    std::int64_t visits = 0;
    for (std::int64_t m = 0; m < table.micro_batches; ++m) visits += table.visits(s, m) ? 1 : 0;
    const auto n = most[static_cast<std::size_t>(s)];
    require(n <= visits && (n > 0) == (visits > 0));
  }
  const auto run = core::ideal_run(table, core::IdealStage{});
  for (std::int64_t r = 0; r < table.pp; ++r) {
    const auto& rank = run.ranks[static_cast<std::size_t>(r)];
    require(run.bubble(r) >= 0 && rank.bubble_of_its_own() >= 0);
    require(rank.ends.size() == table.ranks[static_cast<std::size_t>(r)].size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    check(core::parse_schedule({reinterpret_cast<const char*>(data), size}));
  } catch (const core::InputError& error) {
    require(is_one_line(error.what()));
  }
  return 0;
}

// 1F1B, non-interleaved (PipeDream-Flush; Megatron-LM, arXiv 2104.04473, section 2.2.1): rank r warms up with p - r - 1
// forwards, then alternates one forward and one backward. At most p - r micro-batches are in flight.
#include <fmt/format.h>

#include <algorithm>

#include "core/plan/schedule.h"

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t, std::int64_t vpp, std::int64_t) {
  if (vpp > 1) return fmt::format("schedule 1f1b has one stage a rank, not vpp={}", vpp);
  return std::nullopt;
}

ScheduleTable table(std::int64_t pp, std::int64_t, std::int64_t m) {
  ScheduleTable t{pp, 1, m, std::vector<std::vector<Action>>(static_cast<std::size_t>(pp))};
  for (std::int64_t r = 0; r < pp; ++r) {
    auto& rank = t.ranks[static_cast<std::size_t>(r)];
    rank.reserve(static_cast<std::size_t>(2 * m));
    const auto stage = static_cast<std::uint16_t>(r);
    const auto warm_up = std::min(pp - r - 1, m);
    std::uint32_t forward = 0, backward = 0;
    while (forward < warm_up) rank.push_back({stage, Action::Kind::forward, forward++});
    while (forward < m) {
      rank.push_back({stage, Action::Kind::forward, forward++});
      rank.push_back({stage, Action::Kind::backward, backward++});
    }
    while (backward < m) rank.push_back({stage, Action::Kind::backward, backward++});
  }
  return t;
}

}  // namespace

extern const Schedule one_f_one_b;
const Schedule one_f_one_b = {"1f1b", why_not, table, [](std::int64_t) { return std::int64_t{1}; }};

}  // namespace core::schedules

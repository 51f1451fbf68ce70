// GPipe (arXiv 1811.06965): all forwards, then all backwards. Every micro-batch is in flight at once; the bubble is
// (p - 1) of m + p - 1 slots, as in 1F1B.
#include <fmt/format.h>

#include "core/plan/schedule.h"

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t, std::int64_t vpp, std::int64_t) {
  if (vpp > 1) return fmt::format("schedule gpipe has one stage a rank, not vpp={}", vpp);
  return std::nullopt;
}

ScheduleTable table(std::int64_t pp, std::int64_t, std::int64_t m) {
  ScheduleTable t{pp, 1, m, std::vector<std::vector<Action>>(static_cast<std::size_t>(pp))};
  for (std::size_t r = 0; r < t.ranks.size(); ++r) {
    auto& rank = t.ranks[r];
    rank.reserve(static_cast<std::size_t>(2 * m));
    const auto stage = static_cast<std::uint16_t>(r);
    for (std::uint32_t i = 0; i < m; ++i) rank.push_back({stage, Action::Kind::forward, i});
    for (std::uint32_t i = 0; i < m; ++i) rank.push_back({stage, Action::Kind::backward, i});
  }
  return t;
}

}  // namespace

extern const Schedule gpipe;
const Schedule gpipe = {"gpipe", why_not, table, [](std::int64_t) { return std::int64_t{0}; }};

}  // namespace core::schedules

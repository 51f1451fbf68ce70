// Interleaved 1F1B (Megatron-LM, arXiv 2104.04473, section 2.2.2): each rank has v chunks of layers; micro-batches go
// through in groups of p, chunk after chunk. Rank r warms up with 2 (p - r - 1) + (v - 1) p forwards. The bubble is that of
// 1F1B divided by v; m must be a multiple of p.
#include <fmt/format.h>

#include <algorithm>

#include "core/plan/schedule.h"

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t pp, std::int64_t vpp, std::int64_t m) {
  if (vpp < 2) return "schedule interleaved needs vpp of 2 or more";
  if (pp < 2) return "schedule interleaved needs pp of 2 or more";
  if (m % pp != 0) {
    return fmt::format("{} micro-batches do not divide by pp={} (schedule interleaved)", m, pp);
  }
  return std::nullopt;
}

// The i-th forward of rank r: groups of p micro-batches, chunk by chunk. Backwards take the chunks in reverse.
Action cell(std::int64_t i, std::int64_t r, std::int64_t p, std::int64_t v, Action::Kind kind) {
  const auto in_group = i % (p * v);
  auto chunk = in_group / p;
  if (kind == Action::Kind::backward) chunk = v - 1 - chunk;
  const auto micro_batch = (i / (p * v)) * p + in_group % p;
  return {static_cast<std::uint16_t>(chunk * p + r), kind, static_cast<std::uint32_t>(micro_batch)};
}

ScheduleTable table(std::int64_t pp, std::int64_t vpp, std::int64_t m) {
  ScheduleTable t{pp, vpp, m, std::vector<std::vector<Action>>(static_cast<std::size_t>(pp))};
  const auto total = m * vpp;
  for (std::int64_t r = 0; r < pp; ++r) {
    auto& rank = t.ranks[static_cast<std::size_t>(r)];
    rank.reserve(static_cast<std::size_t>(2 * total));
    const auto warm_up = std::min(2 * (pp - r - 1) + (vpp - 1) * pp, total);
    std::int64_t forward = 0, backward = 0;
    while (forward < warm_up) rank.push_back(cell(forward++, r, pp, vpp, Action::Kind::forward));
    while (forward < total) {
      rank.push_back(cell(forward++, r, pp, vpp, Action::Kind::forward));
      rank.push_back(cell(backward++, r, pp, vpp, Action::Kind::backward));
    }
    while (backward < total) rank.push_back(cell(backward++, r, pp, vpp, Action::Kind::backward));
  }
  return t;
}

}  // namespace

extern const Schedule interleaved;
const Schedule interleaved = {"interleaved", why_not, table, [](std::int64_t pp) { return pp; }};

}  // namespace core::schedules

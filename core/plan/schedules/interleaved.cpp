// Interleaved 1F1B (Megatron-LM, arXiv 2104.04473, section 2.2.2): each rank has v stages; micro-batches go through in groups
// of N, stage after stage. Rank r warms up with 2 (p - r - 1) + (v - 1) N forwards. N = p where p divides the micro-batches,
// and the bubble is then that of 1F1B divided by v; else the least N that Megatron-LM takes (interleaved_order.h).
// In flight on rank r: its warm-up and one more, of 1 / v of its layers each.
#include <algorithm>

#include "core/plan/schedules/interleaved_order.h"

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t pp, std::int64_t vpp, std::int64_t m) {
  return why_not_interleaved("interleaved", pp, vpp, m);
}

ScheduleTable table(std::int64_t pp, std::int64_t vpp, std::int64_t m) {
  const auto total = m * vpp;
  auto t = blank_table(pp, vpp, m, Placement::loop, 2 * total);
  for (std::int64_t r = 0; r < pp; ++r) {
    auto& rank = t.ranks[static_cast<std::size_t>(r)];
    InterleavedCells forward(pp, vpp, m, r, Action::Kind::forward), backward(pp, vpp, m, r, Action::Kind::backward);
    const auto warm_up = std::min(interleaved_warm_up(pp, vpp, m, r), total);
    while (forward.done() < warm_up) rank.push_back(forward.next());
    while (forward.done() < total) {
      rank.push_back(forward.next());
      rank.push_back(backward.next());
    }
    while (backward.done() < total) rank.push_back(backward.next());
  }
  return t;
}

}  // namespace

extern const Schedule interleaved;
const Schedule interleaved = {.name = "interleaved",
                              .why_not = why_not,
                              .table = table,
                              .round_micro_batches = [](std::int64_t pp) { return pp; },
                              .stages_a_rank = std::nullopt};

}  // namespace core::schedules

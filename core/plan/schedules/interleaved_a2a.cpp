// Interleaved 1F1B with the experts' all-to-all overlapped (Megatron-LM, --overlap-moe-expert-parallel-comm with virtual
// stages): interleaved 1F1B whose warm-up is one forward longer, 2 (p - r - 1) + (v - 1) N + 1 on rank r, and whose steady state
// runs a forward and the backward that follows it in that schedule's order as an overlapped pair, the all-to-all of each
// behind the compute of the other. Groups of N micro-batches as in interleaved_order.h. In flight on rank r: its warm-up and
// one more, of 1 / v of its layers each.
#include <algorithm>

#include "core/plan/schedules/interleaved_order.h"

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t pp, std::int64_t vpp, std::int64_t m) {
  return why_not_interleaved("interleaved-a2a", pp, vpp, m);
}

ScheduleTable table(std::int64_t pp, std::int64_t vpp, std::int64_t m) {
  const auto total = m * vpp;
  auto t = blank_table(pp, vpp, m, Placement::loop, 2 * total);
  for (std::int64_t r = 0; r < pp; ++r) {
    auto& rank = t.ranks[static_cast<std::size_t>(r)];
    InterleavedCells forward(pp, vpp, m, r, Action::Kind::forward), backward(pp, vpp, m, r, Action::Kind::backward);
    const auto warm_up = std::min(interleaved_warm_up(pp, vpp, m, r) + 1, total);
    while (forward.done() < warm_up) rank.push_back(forward.next());
    while (forward.done() < total) {
      rank.push_back(forward.next());
      rank.back().with_next = true;
      rank.push_back(backward.next());
    }
    while (backward.done() < total) rank.push_back(backward.next());
  }
  return t;
}

}  // namespace

extern const Schedule interleaved_a2a;
const Schedule interleaved_a2a = {.name = "interleaved-a2a",
                                  .why_not = why_not,
                                  .table = table,
                                  .round_micro_batches = [](std::int64_t pp) { return pp; },
                                  .pairs = true,
                                  .stages_a_rank = std::nullopt};

}  // namespace core::schedules

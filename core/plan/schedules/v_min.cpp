// V-Min (Pipeline Parallelism with Controllable Memory, arXiv 2405.15362, section 3): the V with the least activations in flight,
// neighbouring ranks one slot apart in both directions. The blocks fit where p is no multiple of three; else two slots are
// added at the turn at the top.
//
// Published, with B the input gradient only (our I): activations of (p + 4) / 3 micro-batches, rounded down; bubble about two
// thirds of 1F1B's for T_F = T_B = T_W. Where these differ, the tight chain of ranks passes each delay on.
#include "core/plan/schedules/v_pattern.h"

#include <fmt/format.h>

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t, std::int64_t vpp, std::int64_t) {
  if (vpp != 2) return fmt::format("schedule v-min has two stages a rank, not vpp={}", vpp);
  return std::nullopt;
}

ScheduleTable table(std::int64_t pp, std::int64_t, std::int64_t m) {
  return v_table(pp, m, v_block(pp, 1, 1, 0, pp % 3 == 0 ? 2 : 0, 0));
}

}  // namespace

extern const Schedule v_min;
const Schedule v_min = {.name = "v-min",
                        .why_not = why_not,
                        .table = table,
                        .round_micro_batches = [](std::int64_t) { return std::int64_t{1}; },
                        .placement = Placement::v,
                        .splits_backward = true,
                        .stages_a_rank = 2};

}  // namespace core::schedules

// V-Half (Pipeline Parallelism with Controllable Memory, arXiv 2405.15362, section 3): a V with half the activations of 1F1B in
// flight, neighbouring ranks two slots apart on the way down and one on the way up. The blocks fit with four more slots at the
// turns, as far to the front as they fit, which leaves the warm-up the most to catch up with.
//
// Published, with B the input gradient only (our I): activations of (p + 2) / 2 micro-batches, rounded down; bubble about half
// of 1F1B's for T_F = T_B = T_W. What W keeps until its turn comes on top, of two stages at most.
#include "core/plan/schedules/v_pattern.h"

#include <fmt/format.h>

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t, std::int64_t vpp, std::int64_t) {
  if (vpp != 2) return fmt::format("schedule v-half has two stages a rank, not vpp={}", vpp);
  return std::nullopt;
}

ScheduleTable table(std::int64_t pp, std::int64_t, std::int64_t m) {
  const bool even = pp % 2 == 0;
  return v_table(pp, m, v_block(pp, 2, 1, even ? 4 : 1, 0, even ? 0 : 3));
}

}  // namespace

extern const Schedule v_half;
const Schedule v_half = {.name = "v-half",
                        .why_not = why_not,
                        .table = table,
                        .round_micro_batches = [](std::int64_t) { return std::int64_t{1}; },
                        .placement = Placement::v,
                        .splits_backward = true,
                        .stages_a_rank = 2};

}  // namespace core::schedules

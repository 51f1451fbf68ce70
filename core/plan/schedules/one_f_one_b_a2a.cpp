// 1F1B with the experts' all-to-all overlapped: in the steady state a rank runs the forward of one micro-batch and the backward
// of another as a pair, the all-to-all of each behind the compute of the other (Megatron-LM's
// --overlap-moe-expert-parallel-comm, here without virtual stages).
//
// The two of a pair end together, so that a rank's forward must be a whole pair ahead of the next rank's, and its backward a
// pair behind: rank r warms up with 2 (p - r - 1) + 1 forwards, 1F1B's twice (as interleaved 1F1B) and one for the pair itself.
// With 1F1B's p - r - 1 and one, every rank would wait for its neighbour at every other pair. Makespan, B the whole backward and
// F&B <= F + B a pair: p (F + B) + (m - 1) F&B. In flight on rank r: 2 (p - r).
#include <fmt/format.h>

#include <algorithm>

#include "core/plan/schedule.h"
#include "core/plan/schedules/program.h"

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t, std::int64_t vpp, std::int64_t) {
  if (vpp > 1) return fmt::format("schedule 1f1b-a2a has one stage a rank, not vpp={}", vpp);
  return std::nullopt;
}

ScheduleTable table(std::int64_t pp, std::int64_t, std::int64_t m) {
  auto t = blank_table(pp, 1, m, Placement::loop, 2 * m);
  for (std::int64_t r = 0; r < pp; ++r) {
    StageCells stage(t.ranks[static_cast<std::size_t>(r)], r);
    const auto warm_up = std::min(2 * (pp - r - 1) + 1, m);
    while (stage.forwards() < warm_up) stage.forward();
    while (stage.forwards() < m) stage.forward_with_backward_of(stage);
    while (stage.backwards() < m) stage.backward();
  }
  return t;
}

}  // namespace

extern const Schedule one_f_one_b_a2a;
const Schedule one_f_one_b_a2a = {.name = "1f1b-a2a",
                                  .why_not = why_not,
                                  .table = table,
                                  .round_micro_batches = [](std::int64_t) { return std::int64_t{1}; },
                                  .pairs = true};

}  // namespace core::schedules

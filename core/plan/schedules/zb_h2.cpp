// ZB-H2, the second handcrafted schedule of Zero Bubble (arXiv 2401.10241, section 2.2, figure 3 bottom, tables 1 and 2): as
// ZB-H1 with twice the forwards in the warm-up, 2 (p - r - 1) on rank r (from 0), and W 2 r micro-batches behind. The first
// rank then has work until its first backward arrives, and rank r ends r weight gradients after the first rank, as it began
// r forwards after it: a parallelogram.
//
// Published, with B the input gradient only (our I): bubble (p - 1)(T_F + T_B - 2 T_W) for T_F = T_B = T_W, none; in flight on
// rank r, (2 (p - r) - 1) M_B + 2 r M_W, at most (2 p - 1) M_B. The bubble is that between a rank's own first and last cell: only
// without a synchronization before the optimizer (the paper's post-validation, section 4) can the next step begin there. With
// one, every rank waits for the last, (p - 1) T_F.
#include <fmt/format.h>

#include <algorithm>

#include "core/plan/schedule.h"
#include "core/plan/schedules/program.h"

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t, std::int64_t vpp, std::int64_t) {
  if (vpp > 1) return fmt::format("schedule zb-h2 has one stage a rank, not vpp={}", vpp);
  return std::nullopt;
}

ScheduleTable table(std::int64_t pp, std::int64_t, std::int64_t m) {
  auto t = blank_table(pp, 1, m, Placement::loop, 3 * m);
  for (std::int64_t r = 0; r < pp; ++r) {
    StageCells stage(t.ranks[static_cast<std::size_t>(r)], r);
    const auto warm_up = std::min(2 * (pp - r - 1), m);
    while (stage.forwards() < warm_up) stage.forward();
    while (stage.backwards() < m) {
      if (stage.forwards() < m) stage.forward();
      stage.input_gradient();
      if (stage.backwards() > 2 * r) stage.weight_gradient();
    }
    while (stage.weights() < m) stage.weight_gradient();
  }
  return t;
}

}  // namespace

extern const Schedule zb_h2;
const Schedule zb_h2 = {.name = "zb-h2",
                        .why_not = why_not,
                        .table = table,
                        .round_micro_batches = [](std::int64_t) { return std::int64_t{1}; },
                        .splits_backward = true};

}  // namespace core::schedules

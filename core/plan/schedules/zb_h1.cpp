// ZB-H1, the first handcrafted schedule of Zero Bubble (arXiv 2401.10241, section 2.1, figure 3 top, tables 1 and 2): 1F1B
// whose backward is in two parts. Rank r (from 0) warms up as 1F1B with p - r - 1 forwards, and then takes F, B and W in
// turn, its W r micro-batches behind: the last ranks, which have less in flight, put off more W and fill their cool-down with
// them.
//
// Published, with B the input gradient only (our I) and W the weight gradient: bubble (p - 1)(T_F + T_B - T_W) for
// T_F = T_B = T_W, a third of 1F1B's; in flight on rank r, (p - r) M_B + r M_W, at most the p M_B of 1F1B, where W keeps M_W of
// the M_B that a forward leaves.
#include <fmt/format.h>

#include <algorithm>

#include "core/plan/schedule.h"
#include "core/plan/schedules/program.h"

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t, std::int64_t vpp, std::int64_t) {
  if (vpp > 1) return fmt::format("schedule zb-h1 has one stage a rank, not vpp={}", vpp);
  return std::nullopt;
}

ScheduleTable table(std::int64_t pp, std::int64_t, std::int64_t m) {
  auto t = blank_table(pp, 1, m, Placement::loop, 3 * m);
  for (std::int64_t r = 0; r < pp; ++r) {
    StageCells stage(t.ranks[static_cast<std::size_t>(r)], r);
    const auto warm_up = std::min(pp - r - 1, m);
    while (stage.forwards() < warm_up) stage.forward();
    while (stage.backwards() < m) {
      if (stage.forwards() < m) stage.forward();
      stage.input_gradient();
      if (stage.backwards() > r) stage.weight_gradient();
    }
    while (stage.weights() < m) stage.weight_gradient();
  }
  return t;
}

}  // namespace

extern const Schedule zb_h1;
const Schedule zb_h1 = {.name = "zb-h1",
                        .why_not = why_not,
                        .table = table,
                        .round_micro_batches = [](std::int64_t) { return std::int64_t{1}; },
                        .splits_backward = true};

}  // namespace core::schedules

// DualPipe (DeepSeek-V3, arXiv 2412.19437, section 3.2.1, figure 5 and table 2; order of cells as published in
// github.com/deepseek-ai/DualPipe): half of the micro-batches enter at each end of the pipeline, every rank has two stages of
// the model, and the forward of one direction runs overlapped with the backward of the other, so that the all-to-all of each
// hides behind the compute of the other. W is put off in the warm-up and the cool-down only.
//
// Published, with B the whole backward (I and W) and F&B an overlapped pair: bubble (p / 2 - 1)(F&B + B - 3 W), parameters
// 2 x, activations of p + 1 micro-batches. The tables have that bubble on the innermost ranks, where T_F = T_I >= T_W; the
// others have fewer pairs and, where a pair saves time, more to do in the same step. p is even, and there are at least 2 p
// micro-batches, an even number.
//
// In the plan a rank has one stage (pp model stages); in the table two, as each has two copies.
#include "core/plan/schedules/both_directions.h"

#include <fmt/format.h>

#include <algorithm>

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t pp, std::int64_t vpp, std::int64_t m) {
  if (vpp > 1) return fmt::format("schedule dualpipe has one stage of the model a rank, not vpp={}", vpp);
  if (pp % 2 != 0) return fmt::format("schedule dualpipe needs an even number of ranks, not pp={}", pp);
  if (m % 2 != 0) return fmt::format("schedule dualpipe needs an even number of micro-batches, not {}", m);
  if (m < 2 * pp) return fmt::format("schedule dualpipe needs 2 pp={} micro-batches or more, not {}", 2 * pp, m);
  return std::nullopt;
}

ScheduleTable table(std::int64_t pp, std::int64_t, std::int64_t m) {
  // A rank's forwards, backwards and at most p of the backwards in two parts.
  auto t = blank_table(pp, 2, m, Placement::both_ways, 2 * m + pp);
  for (std::int64_t r = 0; r < pp; ++r) {
    auto& program = t.ranks[static_cast<std::size_t>(r)];
    const StageCells down(program, r), up(program, 2 * pp - 1 - r, m / 2);
    const bool lower = r < pp / 2;
    write_both_directions(
        program, lower ? down : up, lower ? up : down, pp / 2, std::min(r, pp - 1 - r), m / 2);
  }
  return t;
}

}  // namespace

extern const Schedule dualpipe;
const Schedule dualpipe = {.name = "dualpipe",
                           .why_not = why_not,
                           .table = table,
                           .round_micro_batches = [](std::int64_t) { return std::int64_t{2}; },
                           .placement = Placement::both_ways,
                           .splits_backward = true,
                           .pairs = true};

}  // namespace core::schedules

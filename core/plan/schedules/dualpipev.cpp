// DualPipeV, DualPipe cut in half (Sea AI Lab, "Cut-in-half", hackmd.io/@ufotalent/r1lVXsa9Jg; order of cells as published in
// github.com/deepseek-ai/DualPipe): one half of DualPipe's ranks, with the stages laid out as a V, so that the far direction is
// the way back up the V. No stage is there twice.
//
// Published, with B the whole backward (I and W), F&B an overlapped pair, and p' = 2 p stages: bubble
// (p' / 2 - 1)(F&B + B - 3 W), parameters 2 x those of a stage on half as many ranks (so 1 x for a rank), activations of p' + 1
// micro-batches of a stage. The tables have that bubble on the innermost rank, where T_F = T_I >= T_W. At least 2 p
// micro-batches.
#include "core/plan/schedules/both_directions.h"

#include <fmt/format.h>

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t pp, std::int64_t vpp, std::int64_t m) {
  if (vpp != 2) return fmt::format("schedule dualpipev has two stages a rank, not vpp={}", vpp);
  if (m < 2 * pp) return fmt::format("schedule dualpipev needs 2 pp={} micro-batches or more, not {}", 2 * pp, m);
  return std::nullopt;
}

ScheduleTable table(std::int64_t pp, std::int64_t, std::int64_t m) {
  auto t = blank_table(pp, 2, m, Placement::v, 4 * m + 2 * pp);
  for (std::int64_t r = 0; r < pp; ++r) {
    auto& program = t.ranks[static_cast<std::size_t>(r)];
    write_both_directions(
        program, StageCells(program, r), StageCells(program, 2 * pp - 1 - r), pp, r, m);
  }
  return t;
}

}  // namespace

extern const Schedule dualpipev;
const Schedule dualpipev = {.name = "dualpipev",
                            .why_not = why_not,
                            .table = table,
                            .round_micro_batches = [](std::int64_t) { return std::int64_t{1}; },
                            .placement = Placement::v,
                            .splits_backward = true,
                            .pairs = true,
                            .stages_a_rank = 2};

}  // namespace core::schedules

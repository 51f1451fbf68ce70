// ZB-V (Zero Bubble, arXiv 2401.10241, section 6, figure 6; also arXiv 2405.15362): two stages a rank laid out as a V, so that
// a rank with few micro-batches in flight on the way down has many on the way up, and the same in all. Rank r (from 0) warms
// up with 2 (p - r) - 1 forwards down, r times one up and one down, and p - r times F, B, W of the way up; then takes F, B, W of
// each way in turn; the first of what is left goes back without W, W comes last. (The order of torch.distributed.pipelining.)
//
// Published, with B the input gradient only (our I): no bubble for T_F = T_B = T_W, between a rank's own first and last cell as
// for ZB-H2; at most the p M_B of 1F1B in flight (2 p stages of half the layers), on every rank. Fewer than 2 p - 1 micro-batches
// keep the order of 2 p - 1 and leave cells out.
#include <fmt/format.h>

#include <algorithm>

#include "core/plan/schedules/program.h"

namespace core::schedules {

namespace {

std::optional<std::string> why_not(std::int64_t, std::int64_t vpp, std::int64_t) {
  if (vpp != 2) return fmt::format("schedule zb-v has two stages a rank, not vpp={}", vpp);
  return std::nullopt;
}

void write_rank(std::vector<Action>& program, std::int64_t p, std::int64_t r, std::int64_t n) {
  StageCells down(program, r), up(program, 2 * p - 1 - r);
  while (down.forwards() < 2 * (p - r) - 1) down.forward();
  while (up.forwards() < r) up.forward(), down.forward();
  while (up.backwards() < p - r) up.forward(), up.input_gradient(), up.weight_gradient();
  while (up.forwards() < n) {
    if (down.forwards() < n) down.forward();
    down.input_gradient(), down.weight_gradient();
    up.forward(), up.input_gradient(), up.weight_gradient();
  }
  for (std::int64_t i = 0; i < r; ++i) down.input_gradient(), up.input_gradient();
  while (down.backwards() < n) down.input_gradient(), down.weight_gradient();
  while (up.weights() < n) up.weight_gradient();
  while (down.weights() < n) down.weight_gradient();
}

ScheduleTable table(std::int64_t pp, std::int64_t, std::int64_t m) {
  const auto n = std::max(2 * pp - 1, m);
  auto t = blank_table(pp, 2, m, Placement::v, 6 * n);
  for (std::int64_t r = 0; r < pp; ++r) {
    auto& program = t.ranks[static_cast<std::size_t>(r)];
    write_rank(program, pp, r, n);
    if (n > m) std::erase_if(program, [&](const Action& a) { return a.micro_batch >= m; });
  }
  return t;
}

}  // namespace

extern const Schedule zb_v;
const Schedule zb_v = {.name = "zb-v",
                       .why_not = why_not,
                       .table = table,
                       .round_micro_batches = [](std::int64_t) { return std::int64_t{1}; },
                       .placement = Placement::v,
                       .splits_backward = true,
                       .stages_a_rank = 2};

}  // namespace core::schedules

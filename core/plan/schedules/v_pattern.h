#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "core/plan/schedules/program.h"

namespace core::schedules {

// Schedules of two stages a rank laid out as a V, from a building block (arXiv 2405.15362, sections 2 and 3): the slots of one
// micro-batch's six cells on each rank, repeated every six slots. Where no two cells of a rank have the same slot modulo six, the
// blocks fit into each other, and a rank does the cells of all micro-batches in the order of their slots. A cell keeps its
// activations from F to B, so that slots between ranks decide what is in flight: few slots, little memory and less slack.
//
// With the slots `down` and `up` between neighbouring ranks, rank r has F of the stage down the V at down r, of the stage up at
// c1 - up r, the input gradient of the stage up at c2 + down r, of the stage down at c3 - up r, and W in the next free slot.
struct VBlock {
  std::int64_t down, up, c1, c2, c3;

  struct Cell {
    std::int64_t slot;
    bool on_way_up;
    Action::Kind kind;
  };
  // The six cells of the first micro-batch on rank r, as their slots come modulo six.
  std::array<Cell, 6> cells(std::int64_t r) const {
    std::array<Cell, 6> out{{{down * r, false, Action::Kind::forward},
                             {c1 - up * r, true, Action::Kind::forward},
                             {c2 + down * r, true, Action::Kind::input_gradient},
                             {c3 - up * r, false, Action::Kind::input_gradient}}};
    for (std::size_t w = 4; w < 6; ++w) {
      const auto& input_gradient = out[w - 2];
      auto slot = input_gradient.slot + 1;
      const auto taken = [&](const Cell& c) { return c.slot % 6 == slot % 6; };
      while (std::any_of(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(w), taken)) ++slot;
      out[w] = {slot, input_gradient.on_way_up, Action::Kind::weight_gradient};
    }
    std::sort(out.begin(), out.end(), [](const Cell& a, const Cell& b) { return a.slot % 6 < b.slot % 6; });
    return out;
  }
  // Whether the blocks fit: four different slots modulo six on each rank; slots repeat every six ranks.
  bool fits(std::int64_t pp) const {
    for (std::int64_t r = 0; r < std::min<std::int64_t>(pp, 6); ++r) {
      const std::array<std::int64_t, 4> slots{down * r, c1 - up * r, c2 + down * r, c3 - up * r};
      for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          if ((slots[i] - slots[j]) % 6 == 0) return false;
        }
      }
    }
    return true;
  }
};

// The block with the given slots between neighbours that leaves so many slots free before F turns up the V again (on the last
// rank), before the first I (on the first rank), and before I turns (on the last).
inline VBlock v_block(std::int64_t pp,
                      std::int64_t down,
                      std::int64_t up,
                      std::int64_t turn_up,
                      std::int64_t top,
                      std::int64_t turn_down) {
  const auto way = (down + up) * (pp - 1) + 1;  // slots from a cell on the way down to that on the way up, without turn
  const auto c1 = way + turn_up, c2 = c1 + 1 + top, c3 = c2 + way + turn_down;
  return {down, up, c1, c2, c3};
}

inline ScheduleTable v_table(std::int64_t pp, std::int64_t m, const VBlock& block) {
  CORE_ASSERT(block.fits(pp));
  auto t = blank_table(pp, 2, m, Placement::v, 6 * m);
  for (std::int64_t r = 0; r < pp; ++r) {
    auto& program = t.ranks[static_cast<std::size_t>(r)];
    const auto cells = block.cells(r);
    std::int64_t last = 0;
    for (const auto& c : cells) last = std::max(last, c.slot / 6);
    for (std::int64_t six = 0; six < m + last; ++six) {
      for (const auto& c : cells) {
        const auto micro_batch = six - c.slot / 6;
        if (micro_batch < 0 || micro_batch >= m) continue;
        const auto stage = c.on_way_up ? 2 * pp - 1 - r : r;
        program.push_back({static_cast<std::uint16_t>(stage), c.kind, static_cast<std::uint32_t>(micro_batch)});
      }
    }
  }
  return t;
}

}  // namespace core::schedules

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/plan/schedule.h"

// Tables that several tests of schedules ask for.
namespace schedule_tables {

inline core::ScheduleTable table_of(std::string_view schedule,
                                    std::int64_t p,
                                    std::int64_t v,
                                    std::int64_t m) {
  return core::find_schedule(schedule)->table(p, v, m);
}

// Every legal (schedule, p, v, m) of a grid.
struct Size {
  const core::Schedule* schedule;
  std::int64_t p, v, m;
};
inline std::vector<Size> grid() {
  std::vector<Size> sizes;
  for (const auto* schedule : core::schedules::all()) {
    for (const std::int64_t p : {1, 2, 3, 4, 8}) {
      for (const std::int64_t v : {1, 2, 3, 5}) {
        for (const std::int64_t m : {1, 2, 3, 4, 6, 8, 9, 11, 16, 24, 31}) {
          if (!schedule->why_not(p, v, m)) sizes.push_back({schedule, p, v, m});
        }
      }
    }
  }
  return sizes;
}

}  // namespace schedule_tables

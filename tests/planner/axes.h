#pragma once

#include <algorithm>

#include "planner/space.h"

namespace planner {

// The axes of a question without context parallelism, sharding in nodes, recompute of modules, and schedules other than 1F1B,
// GPipe and the interleaved one: spaces that a brute force can follow.
inline Axes plain_axes(const Question& question) {
  auto axes = axes_of(question);
  if (!question.fixed.has("cp")) axes.cp = {1};
  std::erase_if(axes.shardings, [](const Sharding& s) { return s.in_node; });
  std::erase_if(axes.recompute, [](const RecomputeChoice& r) { return r.kind == core::Recompute::modules; });
  if (!question.fixed.has_schedule) {
    std::erase_if(axes.schedules, [](const std::string& name) {
      return name != "1f1b" && name != "gpipe" && name != "interleaved";
    });
  }
  return axes;
}

}  // namespace planner

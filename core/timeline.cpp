#include "core/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "core/io/document.h"

namespace core {

std::string to_text(const Timeline& timeline) {
  std::string out;
  for (std::size_t i = 0; i < timeline.start.size(); ++i) {
    out += fmt::format("{} {} {}\n", i, timeline.start[i], timeline.end[i]);
  }
  return out;
}

Timeline parse_timeline(std::string_view text) {
  Timeline t;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::size_t op = 0;
    SimTime start = 0, end = 0;
    std::string more;
    if (!(words >> op >> start >> end) || words >> more || op != t.start.size() || start < 0 || end < start) {
      throw InputError(fmt::format("timeline: line {}: found \"{}\", expected operation {}, its start and its end",
                                   number, printable(line), t.start.size()));
    }
    t.start.push_back(start);
    t.end.push_back(end);
    t.makespan = std::max(t.makespan, end);
  }
  return t;
}

std::vector<MemoryPoint> memory_over_time(const StepGraph& graph, const Timeline& timeline, std::int32_t rank) {
  struct Change {
    SimTime time;
    std::int64_t bytes;
  };
  std::vector<Change> changes;
  for (const auto& t : graph.tensors) {
    if (t.rank != rank) continue;
    changes.push_back({timeline.start[t.first], t.bytes});
    changes.push_back({timeline.end[t.last], -t.bytes});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
  });
  std::int64_t now = 0;
  for (const auto bytes : graph.resident[static_cast<std::size_t>(rank)]) now += bytes;
  std::vector<MemoryPoint> points{{0, now}};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    now += changes[i].bytes;
    // Deaths of one instant are one point, and so are its births.
    const bool more = i + 1 < changes.size() && changes[i + 1].time == changes[i].time &&
                      (changes[i + 1].bytes < 0) == (changes[i].bytes < 0);
    if (!more) points.push_back({changes[i].time, now});
  }
  return points;
}

}  // namespace core

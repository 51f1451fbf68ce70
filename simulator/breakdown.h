#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/memory.h"
#include "core/timeline.h"
#include "simulator/cost/prices.h"

namespace simulator {

// What a rank's compute queue does or waits for. In the order of CLI.md's "breakdown_s".
enum class Activity : std::uint8_t {
  compute, recompute, bubble, tp_exposed, cp_exposed, pp_exposed, dp_exposed, ep_exposed, offload_exposed, optimizer,
  data_stall, checkpoint, other
};
inline constexpr std::size_t activities = 13;
std::string_view name_of(Activity activity);
using Breakdown = std::array<double, activities>;  // seconds, by Activity
constexpr std::size_t index_of(Activity a) { return static_cast<std::size_t>(a); }

// A graph that ran: everything the reports below read.
struct Ran {
  const core::StepGraph& graph;
  const core::Timeline& timeline;
  const std::vector<Price>& prices;
};

// The rank whose compute queue ends last (the first of several).
std::int32_t last_rank(const Ran& ran);

// The compute queue of a rank from 0 to the makespan, by activity. Waiting is followed back through what was waited for:
// time in which a collective or send ran is its exposed communication, the rest is bubble. Sums to the makespan.
Breakdown breakdown_of(const Ran& ran, std::int32_t rank);

// By which terms one step is faster than another: those that make up at least a tenth of the sum of all differences' sizes,
// largest saving first; at most four. Seconds, negative where `faster` takes less.
std::vector<std::pair<Activity, double>> differing_terms(const Breakdown& slower, const Breakdown& faster);

// Time of a rank by operation name, cells unrolled; `share` rests on Origin.
struct OperationTime {
  std::string name;
  std::string kind;
  std::int64_t count = 0;
  double seconds = 0.0;
  double flops = 0.0;
  double bytes = 0.0;
  Origin origin = Origin::roofline;  // that most of its time rests on
  std::array<double, 3> by_origin{};  // seconds, by Origin
  std::string algorithm;
};
// How often a rank runs each spec of a graph, and how long that takes it in all, cells unrolled: of those by what each takes
// alone.
struct SpecTime {
  std::int64_t count = 0;
  core::SimTime spent = 0;
};
std::vector<SpecTime> time_by_spec(const Ran& ran, std::int32_t rank);
std::vector<OperationTime> by_operation(const Ran& ran, std::int32_t rank);

// Shares of a rank's operation time, overlapped operations included, by what it rests on: measurements of this GPU, curves
// fitted to them, rooflines and estimates. They sum to 1. Reports call the first two together measured_share.
struct OriginShares {
  double measured = 0.0, fitted = 0.0, roofline = 0.0;
};
OriginShares origin_shares(const std::vector<OperationTime>& operations);

// The chain of operations that fixes the makespan, from its last to its first, summed by what they are.
struct CriticalPart {
  std::string what;
  std::int64_t count = 0;
  double seconds = 0.0;
};
std::vector<CriticalPart> critical_path(const Ran& ran);

// Peak of a rank's memory and what it is made of, bytes by MemoryTerm (fragmentation not included).
struct MemoryPeak {
  std::int64_t bytes = 0, short_lived = 0;
  core::SimTime time = 0;
  std::vector<std::int64_t> terms;
};
MemoryPeak memory_peak(const Ran& ran, std::int32_t rank);
std::vector<MemoryPeak> memory_peaks(const Ran& ran);  // of every rank

}  // namespace simulator

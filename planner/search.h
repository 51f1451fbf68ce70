#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "planner/space.h"
#include "simulator/pricer.h"
#include "simulator/step.h"

namespace planner {

// A plan with its makespan at cell grain (the framework's overhead of a step included) and its place in the walk, which
// orders ties.
struct Ranked {
  core::ParallelPlan plan;
  core::SimTime time = 0;
  std::int64_t block = 0, order = 0;
  bool operator<(const Ranked& o) const {
    return std::tie(time, block, order) < std::tie(o.time, o.block, o.order);
  }
};

struct Rejection {
  std::string reason;
  std::int64_t count = 0;
  std::string nearest;     // the plan that came nearest, or an example
  double short_GiB = 0.0;  // of memory: what it lacks
};

struct SearchResult {
  std::int64_t searched = 0;      // legal plans
  std::int64_t evaluated = 0;     // run by the engine at cell grain
  std::int64_t pruned = 0;        // a lower bound of their time is over the time of the last plan kept, fit they or not
  std::int64_t dominated = 0;     // recompute more than a plan that fits and is otherwise the same
  std::int64_t memory_rejected = 0;
  std::int64_t cells = 0;         // schedule cells run
  std::int64_t feasible() const { return evaluated; }  // that were seen to fit
  std::vector<Ranked> best;       // sorted, at most `keep`
  std::vector<Rejection> rejected;
};

struct SearchOptions {
  std::size_t keep = 20;
  // Plans that take longer are not wanted: they are pruned, and fewer than `keep` may be left.
  std::optional<core::SimTime> no_slower_than;
  bool prune = true;              // false: run every plan that fits (the exhaustive search of the tests)
  int threads = 0;                // 0 = all cores; the result does not depend on it
  std::function<void(std::int64_t done)> progress;
  std::function<bool()> stop;     // asked between rounds: true leaves the best so far
};

// Searches all legal plans. Plans that only recompute more than another that fits are not listed: they are slower. Exact:
// the same best plans as running every plan.
SearchResult search(const simulator::Setting& setting,
                    const simulator::Bench& bench,
                    const Question& question,
                    const Axes& axes,
                    const SearchOptions& options = {});

}  // namespace planner

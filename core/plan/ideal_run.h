#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/schedule.h"

namespace core {

// What a stage costs in the model of the papers on schedules: whole numbers of any unit of time and of activation memory.
struct IdealStage {
  std::int64_t forward = 1, backward = 2, input_gradient = 1, weight_gradient = 1;
  std::int64_t activation = 1;       // held from the start of F
  std::int64_t kept_for_weight = 0;  // of it, what I leaves until W; B frees all
  // Overlapped pairs whose backward is of this stage: time of the pair of F and B, of F and I; the longer of the two if nothing.
  std::optional<std::int64_t> with_backward = std::nullopt, with_input_gradient = std::nullopt;
};

// A run of a table without communication, each rank at its own program, as early as its inputs allow.
struct IdealRun {
  struct Rank {
    std::int64_t start = 0, end = 0;   // of its first and last action
    std::int64_t busy = 0;             // time in actions; a pair counts once
    std::vector<std::int64_t> ends;    // of each action; both of a pair end together
    std::vector<std::int64_t> memory;  // activations held while each action runs
    std::int64_t peak = 0;             // most of them
    // Idle time from its first action to its last: what is lost when ranks need not end a step together, as with the
    // optimizer's post-validation of Zero Bubble (arXiv 2401.10241, section 4).
    std::int64_t bubble_of_its_own() const { return end - start - busy; }
  };
  std::int64_t makespan = 0;
  std::vector<Rank> ranks;
  // Idle time of a rank in a step that all begin and end together.
  std::int64_t bubble(std::int64_t rank) const { return makespan - ranks[static_cast<std::size_t>(rank)].busy; }
  std::int64_t least_bubble() const;
};

// Runs a table: an action begins when the one before it of its rank has ended and its inputs are there; a pair begins when
// both have theirs, and is over as one. `stages`: one for each stage of the table, or one for all. Slow and plain, the
// reference that schedules are held against; times of real steps are the simulator's. Asserts that the table can run.
IdealRun ideal_run(const ScheduleTable& table, std::span<const IdealStage> stages);
IdealRun ideal_run(const ScheduleTable& table, const IdealStage& each);

}  // namespace core

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/schedule.h"
#include "core/units.h"

namespace simulator {

// Part of a schedule cell that data-parallel communication waits for or runs beside: an optional gather of its
// parameters, its computation, an optional reduction of its gradients. Durations; -1 = none.
struct Piece {
  core::SimTime gather = -1;
  core::SimTime compute = 0;
  core::SimTime reduce = -1;
};

// Everything that the time of a step at cell grain depends on, besides the schedule table.
struct CellTimes {
  // By virtual stage. The pieces of an ordinary cell, and of the first forward and last backward micro-batch where they
  // differ (else empty).
  std::vector<std::vector<Piece>> forward, first_forward, backward, last_backward;
  // By pipeline rank r: sending an activation from r to r + 1 (mod pp), a gradient from r + 1 to r.
  std::vector<core::SimTime> send_forward, send_backward;
  bool gathers_wait = false;  // fully sharded: pieces are bodies, each gathered one ahead, two alive at most
  // By pipeline rank: reductions left for the end, the optimizer, gathers after it.
  std::vector<std::vector<core::SimTime>> final_reduce, final_gather;
  std::vector<core::SimTime> optimizer;
  std::optional<core::SimTime> tied;  // all-reduce of the tied embedding between first and last rank
  core::SimTime norm = 0;             // all-reduce of the gradient norm over all ranks
};

// Runs schedules at cell grain: the same result as the engine on the graph of core::lower(..., Grain::cell), to the
// picosecond, without building the graph. Keeps its memory between runs.
class CellRunner {
 public:
  // Makespan of the table.
  core::SimTime run(const core::ScheduleTable& table, const CellTimes& times);

  // Makespan with `micro_batches` from a shorter table of the same schedule: when the steady state has become periodic
  // (every clock and every message in flight has advanced by the same time over a round), the rounds that the table lacks
  // each add that time. Nothing where that is not so; then the whole table has to be run.
  std::optional<core::SimTime> run_periodic(const core::ScheduleTable& table,
                                            std::int64_t round_micro_batches,
                                            std::int64_t micro_batches,
                                            const CellTimes& times);

  std::int64_t cells_run() const { return cells_; }

 private:
  struct Rank {
    core::SimTime compute = 0, data = 0, send_forward = 0, send_backward = 0;
    core::SimTime unit = 0, unit_before = 0;  // ends of the last two bodies
    std::size_t next = 0, limit = 0;
  };
  void prepare(const core::ScheduleTable& table, const CellTimes& times);
  bool advance(const core::ScheduleTable& table, const CellTimes& times);
  static void run_cell(Rank& rank, const std::vector<Piece>& pieces, core::SimTime arrival);
  static void run_gathered_cell(Rank& rank, const std::vector<Piece>& pieces, core::SimTime arrival);
  core::SimTime finish(const core::ScheduleTable& table, const CellTimes& times);
  void snapshot(const CellTimes& times, std::vector<core::SimTime>& out) const;

  std::vector<Rank> ranks_;
  std::vector<core::SimTime> forward_arrival_, backward_arrival_;  // by stage and micro-batch, -1 = not yet
  std::vector<std::int64_t> forward_done_, backward_done_;         // by stage, in order of micro-batches
  std::vector<std::int64_t> first_forward_, last_backward_;        // micro-batch, by stage
  std::int64_t micro_batches_ = 0, cells_ = 0;
};

}  // namespace simulator

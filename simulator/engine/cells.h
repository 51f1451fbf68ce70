#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/schedule.h"
#include "core/units.h"
#include "simulator/engine/engine.h"

namespace simulator {

// Part of a schedule cell that data-parallel communication waits for or runs beside: an optional gather of its
// parameters, its computation, an optional reduction of its gradients. Durations alone on the GPU, -1 = none; rates of the
// computation and of a collective that runs beside it.
struct Piece {
  core::SimTime gather = -1;
  core::SimTime compute = 0;
  core::SimTime reduce = -1;
  OverlapRates rates;
};

// Everything that the time of a step at cell grain depends on, besides the schedule table.
struct CellTimes {
  // By virtual stage. The pieces of an ordinary cell, and of the first forward and last backward micro-batch where they
  // differ (else empty).
  std::vector<std::vector<Piece>> forward, first_forward, backward, last_backward;
  // By pipeline rank r: sending an activation from r to r + 1 (mod pp), a gradient from r + 1 to r.
  std::vector<core::SimTime> send_forward, send_backward;
  // Fully sharded: the gather of a piece is queued when the piece before it begins, and waits until the one before that is
  // done. Else all gathers are queued at the start of the step (parameters that the last step updated).
  bool sharded = false;
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
  // (every clock and every message in flight has advanced by the same time over some rounds), the rounds that the table
  // lacks add that time. The period is up to as many rounds as there are ranks: where stages are equal, the slowest circuit
  // of 1F1B is a micro-batch's way through all of them. Nothing where the period does not show, or does not divide what the
  // table lacks; then a longer table has to be run.
  std::optional<core::SimTime> run_periodic(const core::ScheduleTable& table,
                                            std::int64_t round_micro_batches,
                                            std::int64_t micro_batches,
                                            const CellTimes& times);

  std::int64_t cells_run() const { return cells_; }

 private:
  // Where a rank is in its program: an action of the table, and a piece of it.
  struct Place {
    std::size_t action = 0, piece = 0;
  };
  // A collective in the data-parallel queue: work left, in picoseconds at full rate.
  struct Collective {
    core::SimTime work = 0;
    bool gather = false;
  };
  // A rank as of the end of its last piece: all its clocks are at `compute` or, sends, later.
  struct Rank {
    core::SimTime compute = 0, send_forward = 0, send_backward = 0;
    std::vector<Collective> data;  // from `head` on: queued and not done, all of them ready to run
    std::size_t head = 0;
    std::int64_t gathered = 0;     // pieces ahead whose gather is done
    Place ahead;                   // sharded: the next piece whose gather is to be queued
    std::size_t next = 0, limit = 0;
    bool idle() const { return head == data.size(); }
    void finish_collective() {
      if (data[head++].gather) ++gathered;
      if (idle()) data.clear(), head = 0;
    }
  };
  void prepare(const core::ScheduleTable& table, const CellTimes& times);
  void find_edges(const core::ScheduleTable& table);
  const std::vector<Piece>& pieces_of(const core::Action& action, const CellTimes& times) const;
  void queue_gathers(const core::ScheduleTable& table, const CellTimes& times, std::size_t r);
  void queue_next_gather(const core::ScheduleTable& table, const CellTimes& times, std::size_t r);
  static core::SimTime run_data(Rank& rank, core::SimTime until, bool for_gather);
  bool advance(const core::ScheduleTable& table, const CellTimes& times);
  void run_pieces(const core::ScheduleTable& table, const CellTimes& times, std::size_t r,
                  const std::vector<Piece>& pieces, core::SimTime arrival);
  core::SimTime finish(const core::ScheduleTable& table, const CellTimes& times);
  // What later cells depend on: clocks and messages in flight, and the work that is queued.
  struct Snapshot {
    std::vector<core::SimTime> clocks;
    std::vector<std::int64_t> rest;
    // By how much all clocks have advanced since an earlier one, where nothing else has changed.
    std::optional<core::SimTime> shift_from(const Snapshot& earlier) const;
  };
  void take(Snapshot& snapshot) const;

  std::vector<Rank> ranks_;
  std::vector<core::SimTime> forward_arrival_, backward_arrival_;  // by stage and micro-batch, -1 = not yet
  std::vector<std::int64_t> forward_done_, backward_done_;         // by stage, in order of micro-batches
  std::vector<std::int64_t> first_forward_, last_backward_;        // micro-batch, by stage; -1 where no edge differs
  std::int64_t micro_batches_ = 0, cells_ = 0;
};

}  // namespace simulator

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/plan/schedule.h"
#include "core/units.h"
#include "simulator/engine/engine.h"

namespace simulator {

// Durations of the collectives that keep the states of a piece together, in the order in which they are queued.
class CommTimes {
 public:
  void add(core::SimTime time) {
    CORE_ASSERT(count_ < times_.size());
    times_[count_++] = time;
  }
  const core::SimTime* begin() const { return times_.data(); }
  const core::SimTime* end() const { return times_.data() + count_; }
  bool empty() const { return count_ == 0; }
  core::SimTime sum() const {
    core::SimTime sum = 0;
    for (const auto t : *this) sum += t;
    return sum;
  }

 private:
  std::array<core::SimTime, 8> times_{};
  std::size_t count_ = 0;
};

// Part of a schedule cell that data-parallel communication waits for or runs beside: gathers of its parameters, its
// computation, reductions of its gradients. Durations alone on the GPU; rates of the computation and of a collective that
// runs beside it.
struct Piece {
  core::SimTime compute = 0;
  OverlapRates rates;
  CommTimes gathers, reduces;
};
using Pieces = std::vector<Piece>;
// Their computation, and the least of an ordinary cell and one at an edge of the step (which may have none of its own).
core::SimTime compute_of(const Pieces& pieces);
core::SimTime least_of(const Pieces& ordinary, const Pieces& edge);

// Everything that the time of a step at cell grain depends on, besides the schedule table.
struct CellTimes {
  // Stages of the same bodies have the same pieces, which are priced once: which of them a virtual stage of the model has; empty
  // where each stage has its own.
  std::vector<std::uint32_t> like;
  std::size_t like_of(std::size_t stage) const { return like.empty() ? stage : like[stage]; }
  // The pieces of an ordinary cell, and of the first forward micro-batch and the one whose
  // gradients complete last where they differ (else empty). Split backwards have I and W instead of B.
  std::vector<Pieces> forward, first_forward, backward, last_backward, input_gradient, weight_gradient,
      last_weight_gradient;
  // Overlapped pairs: of a forward like f and a backward like b (whole, or I), the computation of both together, in
  // pairs[f * forward.size() + b]; empty where the schedule has none.
  Pieces pairs;
  bool pairs_have_input_gradient = false;
  // By pipeline rank r: a message from r to r + 1 (mod pp), and from r + 1 to r.
  std::vector<core::SimTime> send_up, send_down;
  // Fully sharded: the gathers of a piece are queued when the piece before the last is done. Else all gathers are queued at the
  // start of the step (parameters that the last step updated).
  bool sharded = false;
  // By pipeline rank: reductions left for the end, the optimizer with the gather that it waits for, gathers after it.
  std::vector<std::vector<core::SimTime>> final_reduce, final_gather;
  std::vector<core::SimTime> optimizer;
  std::optional<core::SimTime> tied;  // all-reduce of the tied embedding between first and last rank
  // Both ways: reductions and gathers between ranks p and pp - 1 - p, by the lower of them.
  std::vector<core::SimTime> copies_reduce, copies_gather;
  core::SimTime norm = 0;             // all-reduce of the gradient norm over all ranks
  bool post_validation = false;       // no rank waits for it
};

// What a lower bound of a table's time reads of it: how often cells of each kind and stage of the model are on each rank, and
// how often two of them overlap. Counted once for all plans that run the table.
struct TableWork {
  struct Count {
    core::Action::Kind kind = core::Action::Kind::forward;
    std::size_t stage = 0;  // of the model; of a pair, its forward's
    std::size_t other = 0;  // of a pair, its backward's
    bool pair = false;
    std::int64_t count = 0;
    std::int64_t after_gradient = 0;  // of them, after the rank's last backward or I
  };
  struct Rank {
    std::vector<Count> counts;
    // Stages of the table: of its first cell, of its last backward or I, and of its last cell; and that cell.
    std::size_t first = 0, last_gradient = 0;
    core::Action last;
  };
  std::vector<Rank> ranks;
};
TableWork work_of(const core::ScheduleTable& table);

// Runs schedules at cell grain: the same result as the engine on the graph of core::lower(..., Grain::cell), to the
// picosecond, without building the graph. Keeps its memory between runs.
class CellRunner {
 public:
  // Makespan of the table.
  core::SimTime run(const core::ScheduleTable& table, const CellTimes& times);

  // A lower bound of it, from the counts of the table: for each rank the way of a micro-batch to its first cell, then all its
  // cells one after another, or those up to its last gradient and the way of that gradient to the first stage; then the end of
  // the step as it is. Cells that overlap take the time of their pair, or where that is longer the sum of both.
  core::SimTime at_least(const core::ScheduleTable& table, const TableWork& work, const CellTimes& times);

  // Makespan with `micro_batches` from a shorter table of the same schedule: when the steady state has become periodic
  // (every clock and every message in flight has advanced by the same time over some rounds), the rounds that the table
  // lacks add that time. The period is up to as many rounds as there are ranks: where stages are equal, the slowest circuit
  // of 1F1B is a micro-batch's way through all of them. Nothing where the period does not show, or does not divide what the
  // table lacks; then a longer table has to be run. Nothing either for tables with pairs, split backwards or another
  // placement than loop, whatever the round: those are run whole.
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
    bool gather = false;  // the last gather of a piece
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
  const Pieces& pieces_of(const core::Action& action, const CellTimes& times) const;
  const Piece* pair_of(const core::Action& a, const core::Action& b, const CellTimes& times) const;
  void queue(Rank& rank, const CommTimes& gathers);
  void queue_gathers(const core::ScheduleTable& table, const CellTimes& times, std::size_t r);
  void queue_next_gather(const core::ScheduleTable& table, const CellTimes& times, std::size_t r);
  static core::SimTime run_data(Rank& rank, core::SimTime until, bool for_gather);
  bool advance(const core::ScheduleTable& table, const CellTimes& times);
  void run_pieces(const core::ScheduleTable& table, const CellTimes& times, std::size_t r,
                  const Pieces& pieces, core::SimTime arrival);
  void run_piece(Rank& rank, const Piece& piece, core::SimTime arrival);
  core::SimTime arrival_of(const core::Action& a) const;
  void deliver(const core::ScheduleTable& table, const CellTimes& times, std::size_t r, const core::Action& a);
  core::SimTime finish(const core::ScheduleTable& table, const CellTimes& times);
  static core::SimTime send_time(const core::ScheduleTable& table, const CellTimes& times, std::size_t from, std::size_t to,
                                 bool forward);
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
  std::vector<std::size_t> like_;                           // by stage of the table
  std::vector<std::int64_t> forward_done_, backward_done_;         // by stage, in order of micro-batches
  std::vector<std::int64_t> first_forward_, last_backward_;        // micro-batch, by stage; -1 where no edge differs
  std::int64_t micro_batches_ = 0, cells_ = 0;
};

}  // namespace simulator

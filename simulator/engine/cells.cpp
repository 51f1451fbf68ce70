#include "simulator/engine/cells.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace simulator {

using core::Action;
using core::ScheduleTable;
using core::SimTime;

void CellRunner::prepare(const ScheduleTable& table, const CellTimes& times) {
  const auto stages = static_cast<std::size_t>(table.stages());
  micro_batches_ = table.micro_batches;
  ranks_.assign(table.ranks.size(), Rank{});
  for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].limit = table.ranks[r].size();
  forward_arrival_.assign(stages * static_cast<std::size_t>(micro_batches_), -1);
  backward_arrival_.assign(stages * static_cast<std::size_t>(micro_batches_), -1);
  for (std::int64_t m = 0; m < micro_batches_; ++m) forward_arrival_[static_cast<std::size_t>(m)] = 0;
  forward_done_.assign(stages, 0);
  backward_done_.assign(stages, 0);
  // Which micro-batches have edges of their own. All our schedules run them in order; a table that does not has its
  // first forward and last backward looked up.
  first_forward_.assign(stages, -1);
  last_backward_.assign(stages, -1);
  const bool edges = std::any_of(times.first_forward.begin(), times.first_forward.end(),
                                 [](const auto& pieces) { return !pieces.empty(); }) ||
                     std::any_of(times.last_backward.begin(), times.last_backward.end(),
                                 [](const auto& pieces) { return !pieces.empty(); });
  if (!edges) return;
  auto unseen = stages;
  for (const auto& rank : table.ranks) {
    for (const auto& a : rank) {
      if (a.kind == Action::Kind::forward && first_forward_[a.stage] < 0) first_forward_[a.stage] = a.micro_batch;
    }
    auto left = static_cast<std::int64_t>(table.vpp);
    for (auto a = rank.rbegin(); a != rank.rend() && left > 0; ++a) {
      if (a->kind != Action::Kind::forward && last_backward_[a->stage] < 0) {
        last_backward_[a->stage] = a->micro_batch;
        --left, --unseen;
      }
    }
  }
  CORE_ASSERT(unseen == 0);
}

void CellRunner::run_cell(Rank& rank, const std::vector<Piece>& pieces, SimTime arrival) {
  for (const auto& piece : pieces) {
    SimTime start = std::max(rank.compute, arrival);
    if (piece.gather >= 0) {
      rank.data += piece.gather;
      start = std::max(start, rank.data);
    }
    rank.compute = start + piece.compute;
    if (piece.reduce >= 0) rank.data = std::max(rank.data, rank.compute) + piece.reduce;
  }
}

// Fully sharded: each piece is gathered ahead of the piece before it, when the one before that is done.
void CellRunner::run_gathered_cell(Rank& rank, const std::vector<Piece>& pieces, SimTime arrival) {
  rank.data = std::max(rank.data, rank.unit_before) + pieces.front().gather;
  SimTime gathered = rank.data;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto& piece = pieces[i];
    const SimTime start = std::max({rank.compute, arrival, gathered});
    if (i + 1 < pieces.size()) gathered = rank.data = std::max(rank.data, rank.unit) + pieces[i + 1].gather;
    rank.compute = start + piece.compute;
    if (piece.reduce >= 0) rank.data = std::max(rank.data, rank.compute) + piece.reduce;
    rank.unit_before = rank.unit;
    rank.unit = rank.compute;
  }
}

// Lets each rank run as far as its messages and its limit allow; false when all stand still before their limits.
bool CellRunner::advance(const ScheduleTable& table, const CellTimes& times) {
  const auto last_stage = static_cast<std::size_t>(table.stages() - 1);
  const auto pp = table.ranks.size();
  const auto m = static_cast<std::size_t>(micro_batches_);
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t r = 0; r < pp; ++r) {
      auto& rank = ranks_[r];
      const auto* actions = table.ranks[r].data();
      const auto before = rank.next;
      while (rank.next < rank.limit) {
        const auto& a = actions[rank.next];
        const std::size_t stage = a.stage, at = stage * m + a.micro_batch;
        if (a.kind == Action::Kind::forward) {
          const auto arrival = forward_arrival_[at];
          if (arrival < 0) break;
          const bool first = first_forward_[stage] == static_cast<std::int64_t>(a.micro_batch);
          const auto& pieces =
              first && !times.first_forward[stage].empty() ? times.first_forward[stage] : times.forward[stage];
          times.gathers_wait ? run_gathered_cell(rank, pieces, arrival) : run_cell(rank, pieces, arrival);
          if (stage == last_stage) {
            backward_arrival_[at] = 0;
          } else {
            rank.send_forward = std::max(rank.send_forward, rank.compute) + times.send_forward[r];
            forward_arrival_[at + m] = rank.send_forward;
          }
          ++forward_done_[stage];
        } else {
          const auto arrival = backward_arrival_[at];
          if (arrival < 0) break;
          const bool last = last_backward_[stage] == static_cast<std::int64_t>(a.micro_batch);
          const auto& pieces =
              last && !times.last_backward[stage].empty() ? times.last_backward[stage] : times.backward[stage];
          times.gathers_wait ? run_gathered_cell(rank, pieces, arrival) : run_cell(rank, pieces, arrival);
          if (stage > 0) {
            const auto edge = (r + pp - 1) % pp;
            rank.send_backward = std::max(rank.send_backward, rank.compute) + times.send_backward[edge];
            backward_arrival_[at - m] = rank.send_backward;
          }
          ++backward_done_[stage];
        }
        ++rank.next;
      }
      cells_ += static_cast<std::int64_t>(rank.next - before);
      moved = moved || rank.next != before;
    }
  }
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.next == rank.limit; });
}

SimTime CellRunner::finish(const ScheduleTable& table, const CellTimes& times) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    for (const auto reduce : times.final_reduce[r]) {
      ranks_[r].data = std::max(ranks_[r].data, ranks_[r].compute) + reduce;
    }
  }
  if (times.tied) {
    auto &a = ranks_.front(), &b = ranks_.back();
    a.data = b.data = std::max({a.data, a.compute, b.data, b.compute}) + *times.tied;
  }
  SimTime all = 0;
  for (const auto& rank : ranks_) all = std::max({all, rank.data, rank.compute, rank.send_forward, rank.send_backward});
  // Sends are received before the step can end, so that they never end last.
  SimTime norm = 0;
  for (const auto& rank : ranks_) norm = std::max({norm, rank.data, rank.compute});
  norm += times.norm;
  SimTime makespan = std::max(all, norm);
  for (std::size_t r = 0; r < static_cast<std::size_t>(table.pp); ++r) {
    auto end = norm + times.optimizer[r];
    for (const auto gather : times.final_gather[r]) end += gather;
    makespan = std::max(makespan, end);
  }
  return makespan;
}

SimTime CellRunner::run(const ScheduleTable& table, const CellTimes& times) {
  prepare(table, times);
  const bool done = advance(table, times);
  CORE_ASSERT(done);
  return finish(table, times);
}

// Clocks and messages that later cells depend on. A queue that is free before its rank's compute is as good as free now.
void CellRunner::snapshot(const CellTimes& times, std::vector<SimTime>& out) const {
  out.clear();
  for (const auto& rank : ranks_) {
    out.push_back(rank.compute);
    out.push_back(times.gathers_wait ? rank.data : std::max(rank.data, rank.compute));
    out.push_back(std::max(rank.send_forward, rank.compute));
    out.push_back(std::max(rank.send_backward, rank.compute));
    if (times.gathers_wait) {
      out.push_back(rank.unit);
      out.push_back(rank.unit_before);
    }
  }
  const auto m = micro_batches_;
  for (std::size_t s = 0; s < forward_done_.size(); ++s) {
    const auto in_flight = [&](const std::vector<SimTime>& arrival, std::int64_t from, std::int64_t to) {
      for (auto i = from; i < to; ++i) {
        out.push_back(arrival[s * static_cast<std::size_t>(m) + static_cast<std::size_t>(i)]);
      }
    };
    if (s > 0) in_flight(forward_arrival_, forward_done_[s], forward_done_[s - 1]);
    if (s + 1 < forward_done_.size()) in_flight(backward_arrival_, backward_done_[s], backward_done_[s + 1]);
  }
}

std::optional<SimTime> CellRunner::run_periodic(const ScheduleTable& table,
                                                std::int64_t round_micro_batches,
                                                std::int64_t micro_batches,
                                                const CellTimes& times) {
  const auto missing = micro_batches - table.micro_batches;
  CORE_ASSERT(missing >= 0 && round_micro_batches > 0 && missing % round_micro_batches == 0);
  prepare(table, times);
  // Cut the ranks' programs between rounds: rank r after its warm-up and 2r more actions, which no earlier cut waits for.
  const auto round = static_cast<std::size_t>(2 * round_micro_batches * table.vpp);
  std::vector<std::size_t> cut(ranks_.size());
  auto rounds = std::numeric_limits<std::size_t>::max();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const auto& actions = table.ranks[r];
    const auto lead = static_cast<std::size_t>(
        std::find_if(actions.begin(), actions.end(), [](const Action& a) { return a.kind != Action::Kind::forward; }) -
        actions.begin());
    const auto forwards = static_cast<std::size_t>(table.micro_batches * table.vpp);
    if (lead == 0 || lead >= forwards) return std::nullopt;
    cut[r] = lead - 1 + 2 * r;
    const auto steady_end = lead - 1 + 2 * (forwards - (lead - 1));
    if (cut[r] + round > steady_end) return std::nullopt;
    rounds = std::min(rounds, (steady_end - cut[r]) / round);
  }
  std::vector<SimTime> before, after;
  for (std::size_t k = 0; k <= rounds; ++k) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].limit = cut[r] + k * round;
    if (!advance(table, times)) return std::nullopt;
    std::swap(before, after);
    snapshot(times, after);
    if (k < 2 || before.size() != after.size()) continue;
    const auto shift = after.front() - before.front();
    bool periodic = true;
    for (std::size_t i = 0; i < after.size() && periodic; ++i) periodic = after[i] - before[i] == shift;
    if (!periodic) continue;
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].limit = table.ranks[r].size();
    const bool done = advance(table, times);
    CORE_ASSERT(done);
    return finish(table, times) + shift * (missing / round_micro_batches);
  }
  return std::nullopt;
}

}  // namespace simulator

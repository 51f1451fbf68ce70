#include "simulator/engine/cells.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace simulator {

using core::Action;
using core::ScheduleTable;
using core::SimTime;

namespace {

constexpr std::int64_t full_rate = OverlapRates::full_rate;

SimTime time_of(SimTime work, std::int64_t rate) { return (work + rate - 1) / rate; }

}  // namespace

void CellRunner::prepare(const ScheduleTable& table, const CellTimes& times) {
  const auto stages = static_cast<std::size_t>(table.stages());
  micro_batches_ = table.micro_batches;
  ranks_.resize(table.ranks.size());
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    auto& rank = ranks_[r];
    rank.compute = rank.send_forward = rank.send_backward = 0;
    rank.data.clear();
    rank.head = rank.next = 0;
    rank.gathered = 0;
    rank.ahead = {};
    rank.limit = table.ranks[r].size();
  }
  const auto m = static_cast<std::size_t>(micro_batches_);
  forward_arrival_.assign(stages * m, -1);
  backward_arrival_.assign(stages * m, -1);
  like_.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    like_[s] = times.like_of(static_cast<std::size_t>(table.model_stage(static_cast<std::int64_t>(s))));
    if (!table.is_first(static_cast<std::int64_t>(s))) continue;
    std::fill_n(forward_arrival_.begin() + static_cast<std::ptrdiff_t>(s * m), m, 0);
  }
  forward_done_.assign(stages, 0);
  backward_done_.assign(stages, 0);
  first_forward_.assign(stages, -1);
  last_backward_.assign(stages, -1);
  const auto differs = [](const auto& pieces) { return !pieces.empty(); };
  if (std::any_of(times.first_forward.begin(), times.first_forward.end(), differs) ||
      std::any_of(times.last_backward.begin(), times.last_backward.end(), differs)) {
    find_edges(table);
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) queue_gathers(table, times, r);
}

// Which micro-batches have pieces of their own.
void CellRunner::find_edges(const ScheduleTable& table) {
  for (const auto& rank : table.ranks) {
    auto left = table.vpp;
    for (auto a = rank.begin(); a != rank.end() && left > 0; ++a) {
      if (a->kind != Action::Kind::forward || first_forward_[a->stage] >= 0) continue;
      first_forward_[a->stage] = a->micro_batch;
      --left;
    }
    left = table.vpp;
    for (auto a = rank.rbegin(); a != rank.rend() && left > 0; ++a) {
      const bool completes = a->kind == Action::Kind::backward || a->kind == Action::Kind::weight_gradient;
      if (!completes || last_backward_[a->stage] >= 0) continue;
      last_backward_[a->stage] = a->micro_batch;
      --left;
    }
    CORE_ASSERT(left == 0);
  }
}

const Pieces& CellRunner::pieces_of(const Action& a, const CellTimes& times) const {
  const auto s = like_[a.stage];
  const auto micro_batch = static_cast<std::int64_t>(a.micro_batch);
  switch (a.kind) {
    case Action::Kind::forward:
      return first_forward_[a.stage] == micro_batch && !times.first_forward[s].empty() ? times.first_forward[s]
                                                                                       : times.forward[s];
    case Action::Kind::backward:
      return last_backward_[a.stage] == micro_batch && !times.last_backward[s].empty() ? times.last_backward[s]
                                                                                       : times.backward[s];
    case Action::Kind::input_gradient: return times.input_gradient[s];
    case Action::Kind::weight_gradient:
      return last_backward_[a.stage] == micro_batch && !times.last_weight_gradient[s].empty()
                 ? times.last_weight_gradient[s]
                 : times.weight_gradient[s];
  }
  CORE_ASSERT(false);
}

// The computation of two actions that overlap; null where communication stands between the bodies of one of them.
const Piece* CellRunner::pair_of(const Action& a, const Action& b, const CellTimes& times) const {
  const auto plain = [](const Pieces& pieces) {
    return pieces.size() <= 1 && (pieces.empty() || (pieces.front().gathers.empty() && pieces.front().reduces.empty()));
  };
  if (times.sharded || !plain(pieces_of(a, times)) || !plain(pieces_of(b, times))) return nullptr;
  const auto& forward = a.kind == Action::Kind::forward ? a : b;
  const auto& backward = a.kind == Action::Kind::forward ? b : a;
  CORE_ASSERT((backward.kind == Action::Kind::input_gradient) == times.pairs_have_input_gradient);
  return &times.pairs[like_[forward.stage] * times.forward.size() + like_[backward.stage]];
}

void CellRunner::queue(Rank& rank, const CommTimes& gathers) {
  for (const auto& time : gathers) rank.data.push_back({time * full_rate, &time + 1 == gathers.end()});
}

// What a rank gathers before it has done anything.
void CellRunner::queue_gathers(const ScheduleTable& table, const CellTimes& times, std::size_t r) {
  if (times.sharded) {
    queue_next_gather(table, times, r);
    queue_next_gather(table, times, r);
    return;
  }
  auto left = table.vpp;
  for (std::size_t s = 0; s < like_.size(); ++s) {
    if (table.rank_of(static_cast<std::int64_t>(s)) == static_cast<std::int64_t>(r) &&
        times.first_forward[like_[s]].empty()) {
      --left;
    }
  }
  for (auto a = table.ranks[r].begin(); a != table.ranks[r].end() && left > 0; ++a) {
    const bool is_edge = a->kind == Action::Kind::forward && !times.first_forward[like_[a->stage]].empty() &&
                         first_forward_[a->stage] == static_cast<std::int64_t>(a->micro_batch);
    // The queue is in order: a reduction ahead of a gather would hold it up. Schedules run all stages forward first.
    CORE_ASSERT(is_edge || a->kind == Action::Kind::forward || pieces_of(*a, times).front().reduces.empty());
    if (!is_edge) continue;
    for (const auto& piece : times.first_forward[like_[a->stage]]) queue(ranks_[r], piece.gathers);
    --left;
  }
}

void CellRunner::queue_next_gather(const ScheduleTable& table, const CellTimes& times, std::size_t r) {
  auto& rank = ranks_[r];
  auto& [action, piece] = rank.ahead;
  for (; action < table.ranks[r].size(); ++action, piece = 0) {
    if (table.ranks[r][action].kind == Action::Kind::weight_gradient) continue;
    const auto& pieces = pieces_of(table.ranks[r][action], times);
    if (piece == pieces.size()) continue;
    queue(rank, pieces[piece++].gathers);
    return;
  }
}

// Lets the data-parallel queue of a rank run alone from the end of its last piece to `until`, or until a gather is done when
// that is later and none is done ahead. Returns that time.
SimTime CellRunner::run_data(Rank& rank, SimTime until, bool for_gather) {
  auto now = rank.compute;
  while (!rank.idle() && (now < until || (for_gather && rank.gathered == 0))) {
    auto& work = rank.data[rank.head].work;
    const auto end = now + time_of(work, full_rate);
    if (end > until && !(for_gather && rank.gathered == 0)) {
      work -= (until - now) * full_rate;
      return until;
    }
    now = end;
    rank.finish_collective();
  }
  return std::max(now, until);
}

// While a piece computes, the data-parallel queue runs beside it, both at reduced rates; else the queue runs alone.
void CellRunner::run_piece(Rank& rank, const Piece& piece, SimTime arrival) {
  const bool gathers = !piece.gathers.empty();
  auto now = rank.idle() ? std::max(rank.compute, arrival) : run_data(rank, std::max(rank.compute, arrival), gathers);
  if (gathers) {
    CORE_ASSERT(rank.gathered > 0);
    --rank.gathered;
  }
  auto left = piece.compute * full_rate;
  while (left > 0 && !rank.idle()) {
    auto& work = rank.data[rank.head].work;
    const auto compute = time_of(left, piece.rates.compute), data = time_of(work, piece.rates.communication);
    if (compute < data) {
      work -= compute * piece.rates.communication;
      now += compute;
      left = 0;
    } else {
      left = std::max<SimTime>(0, left - data * piece.rates.compute);
      now += data;
      rank.finish_collective();
    }
  }
  rank.compute = now + time_of(left, full_rate);
  for (const auto reduce : piece.reduces) rank.data.push_back({reduce * full_rate, false});
}

// The pieces of an action one after another.
void CellRunner::run_pieces(const ScheduleTable& table, const CellTimes& times, std::size_t r,
                            const Pieces& pieces, SimTime arrival) {
  auto& rank = ranks_[r];
  const bool needs_parameters = table.ranks[r][rank.next].kind != Action::Kind::weight_gradient;
  for (const auto& piece : pieces) {
    run_piece(rank, piece, arrival);
    if (times.sharded && needs_parameters) queue_next_gather(table, times, r);
  }
  // An action without work waits for its message all the same.
  if (pieces.empty()) rank.compute = run_data(rank, std::max(rank.compute, arrival), false);
}

// When what an action needs has come; -1 = not yet.
SimTime CellRunner::arrival_of(const Action& a) const {
  const auto at = a.stage * static_cast<std::size_t>(micro_batches_) + a.micro_batch;
  if (a.kind == Action::Kind::weight_gradient) return 0;
  return (a.kind == Action::Kind::forward ? forward_arrival_ : backward_arrival_)[at];
}

SimTime CellRunner::send_time(const ScheduleTable& table, const CellTimes& times, std::size_t from, std::size_t to,
                              bool forward) {
  const auto up = to == (from + 1) % table.ranks.size() && (table.placement == core::Placement::loop ? forward : to > from);
  return up ? times.send_up[from] : times.send_down[to];
}

// What an action's end means for others.
void CellRunner::deliver(const ScheduleTable& table, const CellTimes& times, std::size_t r, const Action& a) {
  if (a.kind == Action::Kind::weight_gradient) return;
  auto& rank = ranks_[r];
  const auto m = static_cast<std::size_t>(micro_batches_);
  const auto at = a.stage * m + a.micro_batch;
  const bool forward = a.kind == Action::Kind::forward;
  ++(forward ? forward_done_ : backward_done_)[a.stage];
  if (forward && table.is_last(a.stage)) {
    backward_arrival_[at] = 0;
    return;
  }
  if (!forward && table.is_first(a.stage)) return;
  auto& arrival = forward ? forward_arrival_[at + m] : backward_arrival_[at - m];
  const auto to = static_cast<std::size_t>(table.rank_of(forward ? a.stage + 1 : a.stage - 1));
  if (to == r) {
    arrival = 0;  // the compute queue orders them
    return;
  }
  auto& clock = forward ? rank.send_forward : rank.send_backward;
  clock = std::max(clock, rank.compute) + send_time(table, times, r, to, forward);
  arrival = clock;
}

// Lets each rank run as far as its messages and its limit allow; false when all stand still before their limits.
bool CellRunner::advance(const ScheduleTable& table, const CellTimes& times) {
  const auto pp = table.ranks.size();
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t r = 0; r < pp; ++r) {
      auto& rank = ranks_[r];
      const auto* actions = table.ranks[r].data();
      const auto before = rank.next;
      while (rank.next < rank.limit) {
        const auto& a = actions[rank.next];
        auto arrival = arrival_of(a);
        if (arrival < 0) break;
        if (a.with_next) {
          const auto& b = actions[rank.next + 1];
          const auto other = arrival_of(b);
          if (other < 0) break;
          arrival = std::max(arrival, other);
          if (const auto* pair = pair_of(a, b, times)) {
            run_piece(rank, *pair, arrival);
          } else {
            run_pieces(table, times, r, pieces_of(a, times), arrival);
            ++rank.next;
            run_pieces(table, times, r, pieces_of(b, times), arrival);
            --rank.next;
          }
          deliver(table, times, r, a);
          deliver(table, times, r, b);
          rank.next += 2;
          continue;
        }
        run_pieces(table, times, r, pieces_of(a, times), arrival);
        deliver(table, times, r, a);
        ++rank.next;
      }
      cells_ += static_cast<std::int64_t>(rank.next - before);
      moved = moved || rank.next != before;
    }
  }
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.next >= rank.limit; });
}

SimTime CellRunner::finish(const ScheduleTable& table, const CellTimes& times) {
  const auto pp = ranks_.size();
  std::vector<SimTime> data(pp);
  for (std::size_t r = 0; r < pp; ++r) {
    data[r] = ranks_[r].compute;
    for (auto i = ranks_[r].head; i < ranks_[r].data.size(); ++i) data[r] += time_of(ranks_[r].data[i].work, full_rate);
    for (const auto reduce : times.final_reduce[r]) data[r] += reduce;
  }
  if (times.tied) data.front() = data.back() = std::max(data.front(), data.back()) + *times.tied;
  for (std::size_t r = 0; r < times.copies_reduce.size(); ++r) {
    data[r] = data[pp - 1 - r] = std::max(data[r], data[pp - 1 - r]) + times.copies_reduce[r];
  }
  const auto norm = *std::max_element(data.begin(), data.end()) + times.norm;
  SimTime makespan = times.post_validation ? 0 : norm;
  // Sends are received before the step can end, so that they end last only where they take longest of all.
  for (const auto& rank : ranks_) makespan = std::max({makespan, rank.send_forward, rank.send_backward});
  std::vector<SimTime> end(pp);
  for (std::size_t r = 0; r < static_cast<std::size_t>(table.pp); ++r) {
    end[r] = (times.post_validation ? data[r] : norm) + times.optimizer[r];
    for (const auto gather : times.final_gather[r]) end[r] += gather;
  }
  for (std::size_t r = 0; r < times.copies_gather.size(); ++r) {
    end[r] = end[pp - 1 - r] = std::max(end[r], end[pp - 1 - r]) + times.copies_gather[r];
  }
  return std::max(makespan, *std::max_element(end.begin(), end.end()));
}

SimTime CellRunner::run(const ScheduleTable& table, const CellTimes& times) {
  prepare(table, times);
  const bool done = advance(table, times);
  CORE_ASSERT(done);
  return finish(table, times);
}

TableWork work_of(const ScheduleTable& table) {
  TableWork out;
  for (const auto& actions : table.ranks) {
    auto& rank = out.ranks.emplace_back();
    CORE_ASSERT(!actions.empty() && actions.front().kind == Action::Kind::forward);
    const auto last_gradient = std::find_if(actions.rbegin(), actions.rend(), [](const Action& a) {
      return a.kind == Action::Kind::backward || a.kind == Action::Kind::input_gradient;
    });
    CORE_ASSERT(last_gradient != actions.rend());
    rank.first = actions.front().stage;
    rank.last_gradient = last_gradient->stage;
    rank.last = actions.back();
    // The end of a pair is that of both.
    const auto gradient_at = static_cast<std::size_t>(actions.rend() - last_gradient) - 1;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const auto& a = actions[i];
      const auto model = [&](const Action& x) { return static_cast<std::size_t>(table.model_stage(x.stage)); };
      TableWork::Count cell{a.kind, model(a)};
      const auto begin = i;
      if (a.with_next) {
        const auto& b = actions[++i];
        const bool is_forward = a.kind == Action::Kind::forward;
        cell = {is_forward ? b.kind : a.kind, model(is_forward ? a : b), model(is_forward ? b : a), true};
      }
      auto found = std::find_if(rank.counts.begin(), rank.counts.end(), [&](const TableWork::Count& c) {
        return c.kind == cell.kind && c.stage == cell.stage && c.other == cell.other && c.pair == cell.pair;
      });
      if (found == rank.counts.end()) found = rank.counts.insert(found, cell);
      ++found->count;
      if (begin > gradient_at) ++found->after_gradient;
    }
  }
  return out;
}

SimTime compute_of(const Pieces& pieces) {
  SimTime sum = 0;
  for (const auto& p : pieces) sum += p.compute;
  return sum;
}

SimTime least_of(const Pieces& ordinary, const Pieces& edge) {
  return edge.empty() ? compute_of(ordinary) : std::min(compute_of(ordinary), compute_of(edge));
}

namespace {

// The least that a cell of a kind and stage takes, and the least after which a forward or a gradient can be sent on.
class LeastTimes {
 public:
  LeastTimes(const TableWork& work, const CellTimes& times) : times_(times) {
    for (std::size_t s = 0; s < times.forward.size(); ++s) {
      forward_.push_back(least_of(times.forward[s], times.first_forward[s]));
      backward_.push_back(least_of(times.backward[s], times.last_backward[s]));
      input_gradient_.push_back(compute_of(times.input_gradient[s]));
      weight_gradient_.push_back(least_of(times.weight_gradient[s], times.last_weight_gradient[s]));
    }
    pass_ = forward_;
    pass_back_.assign(forward_.size(), std::numeric_limits<SimTime>::max());
    const auto lower = [](SimTime& least, SimTime time) { least = std::min(least, time); };
    for (const auto& rank : work.ranks) {
      for (const auto& c : rank.counts) {
        const auto f = times.like_of(c.stage), b = c.pair ? times.like_of(c.other) : f;
        if (c.pair) lower(pass_[f], of(c)), lower(pass_back_[b], of(c));
        if (c.kind == Action::Kind::backward) lower(pass_back_[b], backward_[b]);
        if (c.kind == Action::Kind::input_gradient) lower(pass_back_[b], input_gradient_[b]);
      }
    }
  }
  SimTime of(const TableWork::Count& c) const {
    const auto s = times_.like_of(c.stage);
    if (!c.pair) {
      switch (c.kind) {
        case Action::Kind::forward: return forward_[s];
        case Action::Kind::backward: return backward_[s];
        case Action::Kind::input_gradient: return input_gradient_[s];
        case Action::Kind::weight_gradient: return weight_gradient_[s];
      }
    }
    const auto other = times_.like_of(c.other);
    const auto one_by_one = forward_[s] + (c.kind == Action::Kind::input_gradient ? input_gradient_ : backward_)[other];
    if (times_.pairs.empty()) return one_by_one;
    return std::min(one_by_one, times_.pairs[s * forward_.size() + other].compute);
  }
  // Of cells like these, before a forward or a gradient can be sent on.
  SimTime pass(std::size_t like) const { return pass_[like]; }
  SimTime pass_back(std::size_t like) const { return pass_back_[like]; }

 private:
  const CellTimes& times_;
  std::vector<SimTime> forward_, backward_, input_gradient_, weight_gradient_, pass_, pass_back_;
};

}  // namespace

SimTime CellRunner::at_least(const ScheduleTable& table, const TableWork& work, const CellTimes& times) {
  const auto like_of = [&](std::size_t s) {
    return times.like_of(static_cast<std::size_t>(table.model_stage(static_cast<std::int64_t>(s))));
  };
  ranks_.assign(table.ranks.size(), {});
  const LeastTimes least(work, times);
  // The way to each stage of the table, and from it to the first stage.
  const auto stages = static_cast<std::size_t>(table.stages());
  std::vector<SimTime> there(stages, 0), back(stages, 0);
  for (std::size_t s = 0; s < stages; ++s) {
    if (table.is_first(static_cast<std::int64_t>(s))) continue;
    const auto from = static_cast<std::size_t>(table.rank_of(static_cast<std::int64_t>(s) - 1));
    const auto to = static_cast<std::size_t>(table.rank_of(static_cast<std::int64_t>(s)));
    const bool sent = from != to;
    there[s] = there[s - 1] + least.pass(like_of(s - 1)) + (sent ? send_time(table, times, from, to, true) : 0);
    back[s] = back[s - 1] + least.pass_back(like_of(s - 1)) + (sent ? send_time(table, times, to, from, false) : 0);
  }
  std::vector<std::pair<std::size_t, SimTime>> ends;  // of ranks by the gradients that come to them
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const auto& counted = work.ranks[r];
    SimTime all = 0, after_gradient = 0;
    for (const auto& c : counted.counts) {
      const auto time = least.of(c);
      all += c.count * time;
      after_gradient += c.after_gradient * time;
    }
    auto& rank = ranks_[r];
    rank.compute = there[counted.first] + all;
    // The rank that has the first stage of that gradient ends no earlier than it.
    auto first = counted.last_gradient;
    while (!table.is_first(static_cast<std::int64_t>(first))) --first;
    ends.push_back({static_cast<std::size_t>(table.rank_of(static_cast<std::int64_t>(first))),
                          rank.compute - after_gradient + back[counted.last_gradient]});
    // Gradients that its last cell completes are reduced after it.
    const auto last = like_of(counted.last.stage);
    const bool is_weight = counted.last.kind == Action::Kind::weight_gradient;
    const auto& edge = is_weight ? times.last_weight_gradient[last] : times.last_backward[last];
    const auto& pieces = !edge.empty() ? edge : is_weight ? times.weight_gradient[last] : times.backward[last];
    if (pieces.empty() || (!is_weight && counted.last.kind != Action::Kind::backward)) continue;
    for (const auto reduce : pieces.back().reduces) rank.data.push_back({reduce * full_rate, false});
  }
  for (const auto& [r, end] : ends) ranks_[r].compute = std::max(ranks_[r].compute, end);
  return finish(table, times);
}

// A queue that is free before its rank's compute is as good as free now.
void CellRunner::take(Snapshot& snapshot) const {
  auto& [clocks, rest] = snapshot;
  clocks.clear();
  rest.clear();
  for (const auto& rank : ranks_) {
    clocks.push_back(rank.compute);
    clocks.push_back(std::max(rank.send_forward, rank.compute));
    clocks.push_back(std::max(rank.send_backward, rank.compute));
    rest.push_back(rank.gathered);
    rest.push_back(static_cast<std::int64_t>(rank.data.size() - rank.head));
    for (auto i = rank.head; i < rank.data.size(); ++i) rest.push_back(rank.data[i].work);
  }
  const auto m = micro_batches_;
  for (std::size_t s = 0; s < forward_done_.size(); ++s) {
    const auto in_flight = [&](const std::vector<SimTime>& arrival, std::int64_t from, std::int64_t to) {
      for (auto i = from; i < to; ++i) {
        clocks.push_back(arrival[s * static_cast<std::size_t>(m) + static_cast<std::size_t>(i)]);
      }
    };
    if (s > 0) in_flight(forward_arrival_, forward_done_[s], forward_done_[s - 1]);
    if (s + 1 < forward_done_.size()) in_flight(backward_arrival_, backward_done_[s], backward_done_[s + 1]);
  }
}

std::optional<SimTime> CellRunner::Snapshot::shift_from(const Snapshot& earlier) const {
  if (clocks.size() != earlier.clocks.size()) return std::nullopt;
  const auto shift = clocks.front() - earlier.clocks.front();
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    if (clocks[i] - earlier.clocks[i] != shift) return std::nullopt;
  }
  if (rest != earlier.rest) return std::nullopt;
  return shift;
}

namespace {

// Stages in a loop, and neither pairs nor split backwards.
bool is_plain(const ScheduleTable& table) {
  return table.placement == core::Placement::loop && std::ranges::all_of(table.ranks, [](const auto& actions) {
    return std::ranges::all_of(actions, [](const Action& a) {
      return !a.with_next && (a.kind == Action::Kind::forward || a.kind == Action::Kind::backward);
    });
  });
}

}  // namespace

std::optional<SimTime> CellRunner::run_periodic(const ScheduleTable& table,
                                                std::int64_t round_micro_batches,
                                                std::int64_t micro_batches,
                                                const CellTimes& times) {
  // The cuts below count one forward and one whole backward a micro-batch and stage, and ranks in the order of their stages.
  if (!is_plain(table)) return std::nullopt;
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
  const auto missing_rounds = missing / round_micro_batches;
  std::vector<Snapshot> history(ranks_.size() + 1);  // of the last rounds, in a ring
  for (std::size_t k = 0; k <= rounds; ++k) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].limit = cut[r] + k * round;
    if (!advance(table, times)) return std::nullopt;
    const auto& now = history[k % history.size()];
    take(history[k % history.size()]);
    for (std::size_t period = 1; period <= std::min(k, ranks_.size()); ++period) {
      const auto times_over = missing_rounds / static_cast<std::int64_t>(period);
      if (times_over * static_cast<std::int64_t>(period) != missing_rounds) continue;
      const auto shift = now.shift_from(history[(k - period) % history.size()]);
      if (!shift) continue;
      for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].limit = table.ranks[r].size();
      const bool done = advance(table, times);
      CORE_ASSERT(done);
      return finish(table, times) + *shift * times_over;
    }
  }
  return std::nullopt;
}

}  // namespace simulator

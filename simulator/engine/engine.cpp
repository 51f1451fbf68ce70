#include "simulator/engine/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"

namespace simulator {

namespace {

using core::OpId;
using core::SimTime;
using core::StepGraph;
using core::Stream;

// At fixed rates queues and dependencies are edges alike, and ids are a topological order: one pass.
void run_fixed(core::Timeline& t, const StepGraph& g, const std::vector<SimTime>& durations) {
  const auto n = g.size();
  std::vector<SimTime> queue_end(static_cast<std::size_t>(g.ranks * core::streams_per_rank), 0);
  const auto* dependency_begin = g.dependency_begin.data();
  const auto* dependencies = g.dependencies.data();
  const auto* queue_begin = g.queue_begin.data();
  const auto* queues = g.queues.data();
  SimTime* start = t.start.data();
  SimTime* end = t.end.data();
  SimTime makespan = 0;
  for (std::size_t i = 0; i < n; ++i) {
    SimTime at = 0;
    for (auto q = queue_begin[i]; q < queue_begin[i + 1]; ++q) at = std::max(at, queue_end[queues[q]]);
    for (auto d = dependency_begin[i]; d < dependency_begin[i + 1]; ++d) at = std::max(at, end[dependencies[d]]);
    const SimTime done = at + durations[g.spec[i]];
    for (auto q = queue_begin[i]; q < queue_begin[i + 1]; ++q) queue_end[queues[q]] = done;
    start[i] = at;
    end[i] = done;
    makespan = std::max(makespan, done);
  }
  t.makespan = makespan;
}

// Work is counted in picoseconds times the full rate, so that progress is exact.
constexpr std::int64_t full_rate = OverlapRates::full_rate;
constexpr SimTime never = std::numeric_limits<SimTime>::max();

struct Event {
  SimTime time;
  OpId op;
};

// State of a run, kept by each thread so that its memory is reused: by operation where nothing else is said.
struct SlowedState {
  std::vector<std::uint32_t> waits;   // dependencies and queue predecessors not finished
  std::vector<std::int64_t> work;     // left at `since`, in picoseconds x full_rate
  std::vector<SimTime> since;
  std::vector<std::int64_t> rate;     // 0 = not running
  std::vector<OpId> running;          // by queue
  std::vector<OpId> next_in_queue;    // by entry of StepGraph::queues
  std::vector<std::uint32_t> successor_begin;
  std::vector<OpId> successors;
  std::vector<Event> heap;
  std::vector<OpId> ready;
};

// The event loop with overlap slowdown. Only heads of queues can run, so that the running operation of a queue is the
// whole state of it.
class SlowedRun {
 public:
  SlowedRun(core::Timeline& t, const StepGraph& g, const std::vector<SimTime>& durations, const Contention& contention,
            const std::vector<double>& kernel_shares, SlowedState& state)
      : t_(t),
        g_(g),
        durations_(durations),
        rates_(g.specs.size(), {overlap_rates(contention.data, 1.0), overlap_rates(contention.experts, 1.0)}),
        state_(state) {
    for (std::size_t i = 0; i < kernel_shares.size(); ++i) {
      if (kernel_shares[i] == 1.0) continue;
      rates_[i] = {overlap_rates(contention.data, kernel_shares[i]), overlap_rates(contention.experts, kernel_shares[i])};
    }
    const auto queues = static_cast<std::size_t>(g.ranks * core::streams_per_rank);
    waits_.assign(g.size(), 0);
    work_.resize(g.size());
    since_.resize(g.size());
    rate_.assign(g.size(), 0);
    running_.assign(queues, none);
    index_programs(queues);
    index_successors();
  }

  void run() {
    heap_.clear();
    for (OpId i = 0; i < g_.size(); ++i) {
      if (waits_[i] == 0) start(i, 0);
    }
    while (!heap_.empty()) {
      const auto [time, op] = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop_back();
      if (rate_[op] == 0 || finish_time(op) != time) continue;  // rescheduled since
      finish(op, time);
    }
    for (OpId i = 0; i < g_.size(); ++i) CORE_ASSERT(waits_[i] == 0);
  }

 private:
  static constexpr OpId none = std::numeric_limits<OpId>::max();
  static bool later(const Event& a, const Event& b) { return a.time != b.time ? a.time > b.time : a.op > b.op; }

  void index_programs(std::size_t queues) {
    // next_in_queue_ follows each entry of g_.queues to the next operation of the same queue.
    next_in_queue_.assign(g_.queues.size(), none);
    std::vector<std::uint32_t> last(queues, none);
    for (OpId i = 0; i < g_.size(); ++i) {
      for (auto q = g_.queue_begin[i]; q < g_.queue_begin[i + 1]; ++q) {
        auto& before = last[g_.queues[q]];
        if (before != none) next_in_queue_[before] = i, ++waits_[i];
        before = q;
      }
      waits_[i] += g_.dependency_begin[i + 1] - g_.dependency_begin[i];
    }
  }
  void index_successors() {
    successor_begin_.assign(g_.size() + 1, 0);
    for (const auto on : g_.dependencies) ++successor_begin_[on + 1];
    for (std::size_t i = 0; i < g_.size(); ++i) successor_begin_[i + 1] += successor_begin_[i];
    successors_.resize(g_.dependencies.size());
    // Filled from the back, so that each begin ends where it belongs and successors stand in order.
    for (OpId i = static_cast<OpId>(g_.size()); i-- > 0;) {
      for (auto d = g_.dependency_begin[i + 1]; d-- > g_.dependency_begin[i];) {
        successors_[--successor_begin_[g_.dependencies[d] + 1]] = i;
      }
    }
    // begin[k + 1] was the end of k and is now its begin: shift back by one.
    for (std::size_t k = 0; k < g_.size(); ++k) successor_begin_[k] = successor_begin_[k + 1];
    successor_begin_[g_.size()] = static_cast<std::uint32_t>(g_.dependencies.size());
  }

  static Stream stream_of(std::uint32_t queue) {
    return static_cast<Stream>(queue % static_cast<std::uint32_t>(core::streams_per_rank));
  }
  // Rates of an operation of the compute queue beside one of the data-parallel and one of the expert queue.
  struct Rates {
    OverlapRates data, experts;
    const OverlapRates& beside(Stream stream) const { return stream == Stream::data ? data : experts; }
  };
  // Visits the queues whose operations slow those of this one: communication of the same rank's kernels, and they of it.
  template <class Visit>
  static void for_rivals(std::uint32_t queue, const Visit& visit) {
    const auto base = queue - queue % static_cast<std::uint32_t>(core::streams_per_rank);
    switch (stream_of(queue)) {
      case Stream::compute:
        visit(base + static_cast<std::uint32_t>(Stream::data));
        visit(base + static_cast<std::uint32_t>(Stream::expert));
        break;
      case Stream::data:
      case Stream::expert: visit(base + static_cast<std::uint32_t>(Stream::compute)); break;
      default: break;
    }
  }
  // A collective is as slow as at the slowest of its members.
  std::int64_t rate_now(OpId op) const {
    auto rate = full_rate;
    for (auto q = g_.queue_begin[op]; q < g_.queue_begin[op + 1]; ++q) {
      const auto mine = g_.queues[q];
      for_rivals(mine, [&](std::uint32_t other) {
        const auto beside = running_[other];
        if (beside == none) return;
        const bool is_compute = stream_of(mine) == Stream::compute;
        rate = std::min(rate, is_compute ? rates_[g_.spec[op]].beside(stream_of(other)).compute
                                         : rates_[g_.spec[beside]].beside(stream_of(mine)).communication);
      });
    }
    return rate;
  }
  SimTime finish_time(OpId op) const { return since_[op] + (work_[op] + rate_[op] - 1) / rate_[op]; }

  void start(OpId op, SimTime now) {
    t_.start[op] = now;
    const auto duration = durations_[g_.spec[op]];
    CORE_ASSERT(duration < never / full_rate);
    work_[op] = duration * full_rate;
    since_[op] = now;
    for (auto q = g_.queue_begin[op]; q < g_.queue_begin[op + 1]; ++q) running_[g_.queues[q]] = op;
    rate_[op] = rate_now(op);
    push(op);
    adjust_rivals(op, now);
  }
  void push(OpId op) {
    heap_.push_back({finish_time(op), op});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void adjust_rivals(OpId op, SimTime now) {
    for (auto q = g_.queue_begin[op]; q < g_.queue_begin[op + 1]; ++q) {
      for_rivals(g_.queues[q], [&](std::uint32_t other) {
        const auto beside = running_[other];
        if (beside == none) return;
        const auto rate = rate_now(beside);
        if (rate == rate_[beside]) return;
        work_[beside] = std::max<std::int64_t>(0, work_[beside] - (now - since_[beside]) * rate_[beside]);
        since_[beside] = now;
        rate_[beside] = rate;
        push(beside);
      });
    }
  }
  void finish(OpId op, SimTime now) {
    t_.end[op] = now;
    t_.makespan = std::max(t_.makespan, now);
    rate_[op] = 0;
    for (auto q = g_.queue_begin[op]; q < g_.queue_begin[op + 1]; ++q) running_[g_.queues[q]] = none;
    // What starts now starts before rates are adjusted, so that a rival that ends and one that begins at the same
    // instant do not count as a change.
    ready_.clear();
    for (auto q = g_.queue_begin[op]; q < g_.queue_begin[op + 1]; ++q) {
      const auto next = next_in_queue_[q];
      if (next != none && --waits_[next] == 0) ready_.push_back(next);
    }
    for (auto s = successor_begin_[op]; s < successor_begin_[op + 1]; ++s) {
      if (--waits_[successors_[s]] == 0) ready_.push_back(successors_[s]);
    }
    for (const auto next : ready_) start(next, now);
    adjust_rivals(op, now);
  }

  core::Timeline& t_;
  const StepGraph& g_;
  const std::vector<SimTime>& durations_;
  std::vector<Rates> rates_;  // by spec on the compute queue
  SlowedState& state_;
  std::vector<std::uint32_t>& waits_ = state_.waits;
  std::vector<std::int64_t>& work_ = state_.work;
  std::vector<SimTime>& since_ = state_.since;
  std::vector<std::int64_t>& rate_ = state_.rate;
  std::vector<OpId>& running_ = state_.running;
  std::vector<OpId>& next_in_queue_ = state_.next_in_queue;
  std::vector<std::uint32_t>& successor_begin_ = state_.successor_begin;
  std::vector<OpId>& successors_ = state_.successors;
  std::vector<Event>& heap_ = state_.heap;
  std::vector<OpId>& ready_ = state_.ready;
};

}  // namespace

OverlapRates overlap_rates(const Slowdown& slowdown, double kernel_share) {
  const double kernels = kernel_share * (1.0 + slowdown.compute), rest = 1.0 - kernel_share;
  const double time = kernels + rest, full = static_cast<double>(full_rate);
  return {std::llround(full / time), std::llround(full * (kernels / (1.0 + slowdown.communication) + rest) / time)};
}

void run_into(core::Timeline& timeline,
              const core::StepGraph& graph,
              const std::vector<SimTime>& durations,
              const Contention& contention,
              const std::vector<double>& kernel_shares) {
  CORE_ASSERT(durations.size() == graph.specs.size());
  CORE_ASSERT(kernel_shares.empty() || kernel_shares.size() == graph.specs.size());
  timeline.start.resize(graph.size());
  timeline.end.resize(graph.size());
  timeline.makespan = 0;
  if (contention.none()) {
    run_fixed(timeline, graph, durations);
  } else {
    thread_local SlowedState state;
    SlowedRun(timeline, graph, durations, contention, kernel_shares, state).run();
  }
}

core::Timeline run(const core::StepGraph& graph,
                   const std::vector<SimTime>& durations,
                   const Contention& contention,
                   const std::vector<double>& kernel_shares) {
  core::Timeline timeline;
  run_into(timeline, graph, durations, contention, kernel_shares);
  return timeline;
}

}  // namespace simulator

#include "simulator/breakdown.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/error.h"

namespace simulator {

namespace {

using core::OpId;
using core::OpKind;
using core::Phase;
using core::SimTime;
using core::Stream;

double seconds(SimTime t) { return core::to_seconds(t).value; }

// What an operation is, as waiting for it counts.
Activity activity_of(Stream stream) {
  switch (stream) {
    case Stream::tensor: return Activity::tp_exposed;
    case Stream::data: return Activity::dp_exposed;
    case Stream::send_forward:
    case Stream::send_backward: return Activity::pp_exposed;
    case Stream::context: return Activity::cp_exposed;
    case Stream::expert: return Activity::ep_exposed;
    case Stream::to_host:
    case Stream::to_device: return Activity::offload_exposed;
    case Stream::compute: return Activity::bubble;
  }
  CORE_ASSERT(false);
}

Activity own_activity(const core::OpSpec& spec, bool recompute) {
  if (spec.kind == OpKind::optimizer || spec.kind == OpKind::host_optimizer) return Activity::optimizer;
  if (is_copy(spec.kind)) return Activity::offload_exposed;
  if (spec.kind == OpKind::host) return Activity::other;
  return recompute ? Activity::recompute : Activity::compute;
}

// What a collective's exposed time counts as.
Activity exposed(const core::StepGraph& graph, const core::OpSpec& spec) {
  return activity_of(core::stream_of(graph.groups[static_cast<std::size_t>(spec.group)]));
}

// Shares of a cell's time by activity: its kernels, and what its collectives leave exposed, shared out by their durations.
Breakdown cell_shares(const core::StepGraph& graph, std::uint32_t cell, const std::vector<Price>& prices) {
  Breakdown parts{}, waits{};
  double kernels = 0.0, collectives = 0.0;
  for (const auto chain : core::StepGraph::chains_of(graph.specs[cell])) {
    for (const auto& op : graph.chains[chain]) {
      const auto& spec = graph.specs[op.spec];
      const double duration = static_cast<double>(prices[op.spec].duration);
      if (spec.group < 0) {
        parts[index_of(own_activity(spec, op.recompute))] += duration;
        kernels += duration;
      } else {
        // What runs beside the next kernel is exposed by the part that outlasts it at most.
        const double weight = op.overlaps_next ? 1e-3 * duration : duration;
        waits[index_of(exposed(graph, spec))] += weight;
        collectives += weight;
      }
    }
  }
  const double total = static_cast<double>(prices[cell].duration);
  const double exposed_time = std::max(0.0, total - kernels);
  for (std::size_t i = 0; i < activities && collectives > 0.0; ++i) parts[i] += exposed_time * waits[i] / collectives;
  if (total > 0.0) {
    for (auto& p : parts) p /= total;
  } else {
    parts[index_of(Activity::compute)] = 1.0;
  }
  return parts;
}

// Operations before each operation in its queues.
class QueueOrder {
 public:
  explicit QueueOrder(const core::StepGraph& graph) : graph_(graph), before_(graph.queues.size(), none) {
    std::vector<std::uint32_t> last(static_cast<std::size_t>(graph.ranks * core::streams_per_rank), none);
    for (OpId op = 0; op < graph.size(); ++op) {
      for (auto q = graph.queue_begin[op]; q < graph.queue_begin[op + 1]; ++q) {
        before_[q] = last[graph.queues[q]];
        last[graph.queues[q]] = op;
      }
    }
  }
  // The operation whose end let this one start: of those that end latest, the one with the highest id.
  std::optional<OpId> binding(OpId op, const core::Timeline& t) const {
    std::optional<OpId> best;
    const auto consider = [&](OpId candidate) {
      if (!best || t.end[candidate] > t.end[*best] || (t.end[candidate] == t.end[*best] && candidate > *best)) {
        best = candidate;
      }
    };
    for (auto d = graph_.dependency_begin[op]; d < graph_.dependency_begin[op + 1]; ++d) consider(graph_.dependencies[d]);
    for (auto q = graph_.queue_begin[op]; q < graph_.queue_begin[op + 1]; ++q) {
      if (before_[q] != none) consider(before_[q]);
    }
    return best;
  }

 private:
  static constexpr OpId none = ~OpId{0};
  const core::StepGraph& graph_;
  std::vector<OpId> before_;
};

// Charges the wait of `op` on its rank's compute queue in [from, to).
void charge_wait(const Ran& ran, const QueueOrder& order, OpId op, SimTime from, SimTime to, Breakdown& out) {
  auto at = op;
  while (to > from) {
    const auto cause = order.binding(at, ran.timeline);
    if (!cause || ran.timeline.end[*cause] <= from) break;
    const auto activity = is_copy(ran.graph.specs[ran.graph.spec[*cause]].kind) ? Activity::offload_exposed
                                                                                  : activity_of(ran.graph.stream_of(*cause));
    if (activity == Activity::bubble) break;  // another rank computes
    const auto begin = std::max(from, ran.timeline.start[*cause]);
    if (begin < to) out[index_of(activity)] += seconds(to - begin);
    to = std::min(to, begin);
    at = *cause;
  }
  out[index_of(Activity::bubble)] += seconds(std::max<SimTime>(0, to - from));
}

}  // namespace

std::vector<std::pair<Activity, double>> differing_terms(const Breakdown& slower, const Breakdown& faster) {
  std::vector<std::pair<Activity, double>> terms;
  double sum = 0.0;
  for (std::size_t i = 0; i < activities; ++i) {
    terms.emplace_back(static_cast<Activity>(i), faster[i] - slower[i]);
    sum += std::abs(faster[i] - slower[i]);
  }
  std::erase_if(terms, [&](const auto& term) { return sum == 0.0 || std::abs(term.second) < 0.1 * sum; });
  std::stable_sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (terms.size() > 4) terms.resize(4);
  return terms;
}

std::string_view name_of(Activity activity) {
  static constexpr std::string_view names[] = {"compute",    "recompute",  "bubble",          "tp_exposed", "cp_exposed",
                                               "pp_exposed", "dp_exposed", "ep_exposed",      "offload_exposed",
                                               "optimizer",  "data_stall", "checkpoint",      "other"};
  return names[index_of(activity)];
}

std::int32_t last_rank(const Ran& ran) {
  std::vector<SimTime> end(static_cast<std::size_t>(ran.graph.ranks), 0);
  for (OpId op = 0; op < ran.graph.size(); ++op) {
    if (ran.graph.stream_of(op) != Stream::compute) continue;
    auto& e = end[static_cast<std::size_t>(ran.graph.rank_of(op))];
    e = std::max(e, ran.timeline.end[op]);
  }
  return static_cast<std::int32_t>(std::max_element(end.begin(), end.end()) - end.begin());
}

Breakdown breakdown_of(const Ran& ran, std::int32_t rank) {
  const QueueOrder order(ran.graph);
  std::map<std::uint32_t, Breakdown> cells;
  Breakdown out{};
  SimTime at = 0;
  for (OpId op = 0; op < ran.graph.size(); ++op) {
    if (ran.graph.stream_of(op) != Stream::compute || ran.graph.rank_of(op) != rank) continue;
    const auto start = ran.timeline.start[op], end = ran.timeline.end[op];
    if (start > at) charge_wait(ran, order, op, at, start, out);
    const auto id = ran.graph.spec[op];
    const auto& spec = ran.graph.specs[id];
    if (spec.kind == OpKind::cell) {
      auto found = cells.find(id);
      if (found == cells.end()) found = cells.emplace(id, cell_shares(ran.graph, id, ran.prices)).first;
      for (std::size_t i = 0; i < activities; ++i) out[i] += found->second[i] * seconds(end - start);
    } else {
      out[index_of(own_activity(spec, ran.graph.recompute[op] != 0))] += seconds(end - start);
    }
    at = end;
  }
  // What runs after the last kernel: copies and gathers of updated parameters.
  SimTime copies = 0;
  for (OpId op = 0; op < ran.graph.size(); ++op) {
    const bool is_mine = ran.graph.stream_of(op) == Stream::data && ran.graph.rank_of(op) == rank;
    if (is_mine && is_copy(ran.graph.specs[ran.graph.spec[op]].kind)) {
      copies += std::max<SimTime>(0, ran.timeline.end[op] - std::max(at, ran.timeline.start[op]));
    }
  }
  out[index_of(Activity::offload_exposed)] += seconds(copies);
  out[index_of(Activity::dp_exposed)] += seconds(ran.timeline.makespan - at - copies);
  return out;
}

std::vector<SpecTime> time_by_spec(const Ran& ran, std::int32_t rank) {
  std::vector<SpecTime> times(ran.graph.specs.size());
  for (OpId op = 0; op < ran.graph.size(); ++op) {
    bool mine = false;
    for (auto q = ran.graph.queue_begin[op]; q < ran.graph.queue_begin[op + 1]; ++q) {
      mine = mine || static_cast<std::int32_t>(ran.graph.queues[q]) / core::streams_per_rank == rank;
    }
    if (!mine) continue;
    const auto id = ran.graph.spec[op];
    if (ran.graph.specs[id].kind != OpKind::cell) {
      ++times[id].count;
      times[id].spent += ran.timeline.end[op] - ran.timeline.start[op];
      continue;
    }
    for (const auto chain : core::StepGraph::chains_of(ran.graph.specs[id])) {
      for (const auto& c : ran.graph.chains[chain]) {
        ++times[c.spec].count;
        times[c.spec].spent += ran.prices[c.spec].duration;
      }
    }
  }
  return times;
}

std::vector<OperationTime> by_operation(const Ran& ran, std::int32_t rank) {
  const auto times = time_by_spec(ran, rank);
  std::map<std::string, OperationTime> named;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto [count, spent] = times[i];
    if (count == 0 || spent == 0) continue;
    const auto& spec = ran.graph.specs[i];
    auto& entry = named[spec.name.str()];
    entry.name = spec.name.str();
    entry.kind = std::string(core::name_of(spec.kind));
    entry.count += count;
    entry.seconds += seconds(spent);
    entry.flops += spec.flops.value * static_cast<double>(count);
    // Of a copy beside a body only what outlasts it is time of its own: no rate comes of that.
    if (!is_wait(spec)) entry.bytes += spec.bytes.value * static_cast<double>(count);
    entry.by_origin[static_cast<std::size_t>(ran.prices[i].origin)] += seconds(spent);
    entry.algorithm = std::string(ran.prices[i].algorithm);
  }
  std::vector<OperationTime> out;
  for (auto& [name, entry] : named) {
    const auto most = std::max_element(entry.by_origin.begin(), entry.by_origin.end());
    entry.origin = static_cast<Origin>(most - entry.by_origin.begin());
    out.push_back(std::move(entry));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return out;
}

OriginShares origin_shares(const std::vector<OperationTime>& operations) {
  OriginShares shares;
  double total = 0.0;
  for (const auto& op : operations) {
    total += op.seconds;
    shares.measured += op.by_origin[static_cast<std::size_t>(Origin::measured)];
    shares.fitted += op.by_origin[static_cast<std::size_t>(Origin::fitted)];
    shares.roofline += op.by_origin[static_cast<std::size_t>(Origin::roofline)];
  }
  if (total > 0.0) shares.measured /= total, shares.fitted /= total, shares.roofline /= total;
  return shares;
}

std::vector<CriticalPart> critical_path(const Ran& ran) {
  if (ran.graph.size() == 0) return {};
  const QueueOrder order(ran.graph);
  std::optional<OpId> at;
  for (OpId op = 0; op < ran.graph.size(); ++op) {
    if (ran.timeline.end[op] == ran.timeline.makespan) at = op;
  }
  std::map<std::string, CriticalPart> parts;
  while (at) {
    const auto& spec = ran.graph.specs[ran.graph.spec[*at]];
    const auto rank = ran.graph.rank_of(*at);
    const auto what = std::string(core::name_of(ran.graph.stream_of(*at))) + " on pipeline rank " +
                      std::to_string(rank) + ": " + spec.name.str();
    auto& part = parts[what];
    part.what = what;
    ++part.count;
    part.seconds += seconds(ran.timeline.end[*at] - ran.timeline.start[*at]);
    at = order.binding(*at, ran.timeline);
  }
  std::vector<CriticalPart> out;
  for (auto& [what, part] : parts) {
    if (part.seconds > 0.0) out.push_back(std::move(part));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return out;
}

namespace {

// A tensor's birth or death on a rank.
struct Change {
  SimTime time;
  std::int64_t bytes;
  core::MemoryTerm term;
};

// Tensors in the order of their last operations: a counting sort, since operations number as many as tensors.
std::vector<std::uint32_t> by_last_operation(const core::StepGraph& graph) {
  std::vector<std::uint32_t> begin(graph.size() + 1, 0);
  for (const auto& t : graph.tensors) ++begin[t.last + 1];
  for (std::size_t i = 0; i < graph.size(); ++i) begin[i + 1] += begin[i];
  std::vector<std::uint32_t> order(graph.tensors.size());
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) order[begin[graph.tensors[i].last]++] = i;
  return order;
}

// Operations of a rank are numbered as they run, so that this is all but always sorted already.
void sort_by_time(std::vector<Change>& changes) {
  const auto earlier = [](const Change& a, const Change& b) { return a.time < b.time; };
  if (!std::is_sorted(changes.begin(), changes.end(), earlier)) {
    std::stable_sort(changes.begin(), changes.end(), earlier);
  }
}

struct RankChanges {
  std::vector<Change> births, deaths;
};

MemoryPeak peak_of(const RankChanges& changes, std::vector<std::int64_t> now) {
  std::int64_t resident = 0, held = 0;
  for (const auto bytes : now) resident += bytes;
  MemoryPeak peak{resident, 0, 0, now};
  std::size_t dead = 0;
  for (const auto& birth : changes.births) {
    // Deaths of the same instant come first.
    for (; dead < changes.deaths.size() && changes.deaths[dead].time <= birth.time; ++dead) {
      now[core::index_of(changes.deaths[dead].term)] -= changes.deaths[dead].bytes;
      held -= changes.deaths[dead].bytes;
    }
    now[core::index_of(birth.term)] += birth.bytes;
    held += birth.bytes;
    if (resident + held > peak.bytes) peak = {resident + held, held, birth.time, now};
  }
  return peak;
}

}  // namespace

std::vector<MemoryPeak> memory_peaks(const Ran& ran) {
  std::vector<RankChanges> changes(static_cast<std::size_t>(ran.graph.ranks));
  for (const auto& t : ran.graph.tensors) {
    changes[static_cast<std::size_t>(t.rank)].births.push_back({ran.timeline.start[t.first], t.bytes, t.term});
  }
  for (const auto i : by_last_operation(ran.graph)) {
    const auto& t = ran.graph.tensors[i];
    changes[static_cast<std::size_t>(t.rank)].deaths.push_back({ran.timeline.end[t.last], t.bytes, t.term});
  }
  std::vector<MemoryPeak> peaks;
  for (std::size_t r = 0; r < changes.size(); ++r) {
    sort_by_time(changes[r].births);
    sort_by_time(changes[r].deaths);
    peaks.push_back(peak_of(changes[r], ran.graph.resident[r]));
  }
  return peaks;
}

MemoryPeak memory_peak(const Ran& ran, std::int32_t rank) { return memory_peaks(ran)[static_cast<std::size_t>(rank)]; }

}  // namespace simulator

#include "simulator/pricer.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "core/error.h"
#include "simulator/pricer/parts.h"

namespace simulator {

using core::OpKind;
using core::Part;
using core::SimTime;

SimTime Pricer::state_time(const core::StateOp& op) {
  const auto [found, added] = state_times_.try_emplace({op.bytes, op.kind, op.group, op.levels}, 0);
  if (added && core::is_copy(op.kind)) {
    found->second = price_of(core::spec_of(op, setting_.recipe.compute_format, -1), {}, bench_.machine()).duration;
  } else if (added) {
    const auto links = bench_.topology().group(0, op.group.stride, op.group.size);
    const Collective collective{.kind = op.kind, .bytes = core::Bytes{op.bytes}, .levels = static_cast<Levels>(op.levels)};
    found->second = bench_.machine().time_of(collective_time(collective, links, bench_.curves()).cost);
  }
  return found->second;
}

// Between two pipeline ranks, of which the lower one begins at rank `first`: which links join them depends on it.
SimTime Pricer::copies_time(const core::StateOps& ops, std::int64_t first) const {
  SimTime sum = 0;
  for (const auto& op : ops) {
    const auto links = bench_.topology().group(first, op.group.stride, op.group.size);
    sum += bench_.machine().time_of(collective_time(op.kind, core::Bytes{op.bytes}, links, bench_.curves()).cost);
  }
  return sum;
}

CommTimes Pricer::times_of(const core::StateOps& ops) {
  CommTimes out;
  for (const auto& op : ops) out.add(state_time(op));
  return out;
}

SimTime Pricer::send_time(const core::ParallelPlan& plan, std::int64_t from, std::int64_t to, double bytes) {
  const auto stride = plan.ranks_of_stage();
  const auto key = std::make_tuple(from * stride, to * stride, bytes);
  const auto found = send_times_.find(key);
  if (found != send_times_.end()) return found->second;
  const auto links = bench_.topology().pair(from * stride, to * stride);
  const auto time =
      bench_.machine().time_of(collective_time(OpKind::send_receive, core::Bytes{bytes}, links, bench_.curves()).cost);
  send_times_.emplace(key, time);
  return time;
}

// As core::buckets_of.
std::vector<core::BodyRange> Pricer::buckets(const core::ParallelPlan& plan) const {
  const auto& framework = setting_.framework_of(plan);
  const double least = std::max(framework.bucket_parameters,
                                framework.bucket_parameters_per_rank * static_cast<double>(plan.replicas()));
  std::vector<core::BodyRange> out;
  double sum = 0.0;
  auto end = expanded_.size();
  for (auto i = expanded_.size(); i-- > 0;) {
    sum += expanded_[i]->elements.all();
    if (sum >= least || i == 0) {
      out.push_back({i, end});
      end = i;
      sum = 0.0;
    }
  }
  return out;
}

namespace {

struct RangePrice {
  PartTimes parts{};
  core::StateElements elements;
};

RangePrice sum_of(const std::vector<const BodyPrice*>& bodies, core::BodyRange range) {
  RangePrice p;
  for (auto i = range.begin; i < range.end; ++i) {
    for (std::size_t part = 0; part < p.parts.size(); ++part) p.parts[part] += bodies[i]->parts[part];
    p.elements += bodies[i]->elements;
  }
  return p;
}

}  // namespace

Piece Pricer::piece_of(const PartTime& time) const {
  return {time.time, overlap_rates(slowdown_, kernel_share(time.time, time.slowed, slowdown_)), {}, {}};
}

namespace {

// What of a plan's state traffic goes with bodies of the same elements, worked out once for those that follow one another.
template <typename Times>
class AlikeTraffic {
 public:
  explicit AlikeTraffic(Times times) : times_(std::move(times)) {}
  const auto& of(const core::StateElements& elements) {
    const bool same = last_ && elements_.dense == elements.dense && elements_.experts == elements.experts;
    if (!same) last_ = times_(elements), elements_ = elements;
    return *last_;
  }

 private:
  Times times_;
  core::StateElements elements_;
  std::optional<std::invoke_result_t<Times, core::StateElements>> last_;
};

struct ReduceTimes {
  CommTimes each, last;
};

}  // namespace

// Nothing is gathered unit by unit: the first forward has the gather of updated parameters, and the last backward (with
// sharded gradients each) the reduction of gradients, bucket by bucket.
void Pricer::edge_pieces(const core::ParallelPlan& plan, const core::StateTraffic& traffic, std::size_t like, CellTimes& out) {
  const bool reduces = traffic.reduces() && (traffic.reduces_each() || plan.overlap_gradients);
  if (!reduces && !traffic.gathers_ahead()) return;
  expand(stages_[first_like_[like]]);
  auto ranges = buckets(plan);
  if (reduces) {
    if (traffic.reduces_runs()) out.inner_backward[like] = out.backward[like];
    if (traffic.reduces_each()) out.backward[like].clear(), out.weight_gradient[like].clear();
    AlikeTraffic reduce_times([&](const core::StateElements& elements) {
      ReduceTimes times{times_of(traffic.reduce_each(elements)), {}};
      times.last = times.each;
      for (const auto time : times_of(traffic.reduce_last(elements))) times.last.add(time);
      return times;
    });
    for (const auto range : ranges) {
      const auto sum = sum_of(expanded_, range);
      const auto& times = reduce_times.of(sum.elements);
      const auto add = [&](Part part, Pieces& ordinary, Pieces& edge) {
        auto piece = piece_of(sum.parts[index_of(part)]);
        piece.reduces = times.each;
        if (traffic.reduces_each()) ordinary.push_back(piece);
        piece.reduces = times.last;
        edge.push_back(piece);
      };
      add(Part::backward, out.backward[like], out.last_backward[like]);
      add(Part::weight_gradient, out.weight_gradient[like], out.last_weight_gradient[like]);
    }
  }
  if (traffic.gathers_ahead()) {
    std::reverse(ranges.begin(), ranges.end());
    AlikeTraffic gather_times([&](const core::StateElements& elements) { return times_of(traffic.updated_gather(elements)); });
    for (const auto range : ranges) {
      const auto sum = sum_of(expanded_, range);
      auto piece = piece_of(sum.parts[index_of(Part::forward)]);
      piece.gathers = gather_times.of(sum.elements);
      out.first_forward[like].push_back(piece);
    }
  }
}

// Every body is gathered before it runs, and its gradient reduced after.
void Pricer::sharded_pieces(const core::StateTraffic& traffic, bool reduces_last, std::size_t like, CellTimes& out) {
  const auto& runs = stages_[first_like_[like]].runs;
  const auto add = [](Pieces& pieces, std::int64_t count, const Piece& piece) {
    pieces.insert(pieces.end(), static_cast<std::size_t>(count), piece);
  };
  for (const auto& run : runs) {
    auto piece = piece_of(run.body->parts[index_of(Part::forward)]);
    piece.gathers = times_of(traffic.unit_gather(run.body->elements));
    add(out.forward[like], run.count, piece);
  }
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    const auto& body = *run->body;
    const auto gathers = times_of(traffic.unit_gather(body.elements));
    const auto each = times_of(traffic.reduce_each(body.elements));
    auto last = each;
    for (const auto time : times_of(traffic.reduce_last(body.elements))) last.add(time);
    auto input = piece_of(body.parts[index_of(Part::input_gradient)]);
    input.gathers = gathers;
    add(out.input_gradient[like], run->count, input);
    const auto add_both = [&](Part part, Pieces& ordinary, Pieces& edge, bool is_gathered) {
      auto piece = piece_of(body.parts[index_of(part)]);
      if (is_gathered) piece.gathers = gathers;
      piece.reduces = each;
      add(ordinary, run->count, piece);
      if (reduces_last) piece.reduces = last;
      add(edge, run->count, piece);
    };
    add_both(Part::backward, out.backward[like], out.last_backward[like], true);
    add_both(Part::weight_gradient, out.weight_gradient[like], out.last_weight_gradient[like], false);
  }
}

void Pricer::cell_times(const core::ParallelPlan& plan, CellTimes& out, Pairs pairs) {
  auto& priced_bodies = priced(plan);
  const core::StateTraffic traffic(plan, setting_.recipe);
  const auto& schedule = schedule_of(plan);
  lay_out(plan, priced_bodies);
  const auto pp = static_cast<std::size_t>(plan.pp);
  out.sharded = traffic.gathers_units();
  out.post_validation = plan.post_validation;
  out.like = like_;
  const auto likes = first_like_.size();
  for (auto* pieces : {&out.forward, &out.first_forward, &out.backward, &out.last_backward, &out.input_gradient,
                       &out.weight_gradient, &out.last_weight_gradient}) {
    pieces->resize(likes);
    for (auto& p : *pieces) p.clear();
  }
  out.inner_backward.assign(traffic.reduces_runs() ? likes : 0, {});
  std::vector<core::RankParameters> of_like(likes), of_rank(pp);
  for (std::size_t like = 0; like < likes; ++like) {
    for (const auto& run : stages_[first_like_[like]].runs) add(of_like[like], *run.body, run.count);
    if (out.sharded) {
      sharded_pieces(traffic, traffic.reduces_each() || plan.overlap_gradients, like, out);
      continue;
    }
    const auto& times = like_times_[like];
    out.forward[like].push_back(piece_of(times[index_of(Part::forward)]));
    out.backward[like].push_back(piece_of(times[index_of(Part::backward)]));
    out.input_gradient[like].push_back(piece_of(times[index_of(Part::input_gradient)]));
    out.weight_gradient[like].push_back(piece_of(times[index_of(Part::weight_gradient)]));
    edge_pieces(plan, traffic, like, out);
  }
  out.final_reduce.assign(pp, {});
  out.final_gather.assign(pp, {});
  const bool reduces_at_the_end = traffic.reduces() && !traffic.reduces_each() && !plan.overlap_gradients;
  for (std::size_t r = 0; r < pp; ++r) {
    for (const auto s : core::model_stages_of_rank(schedule.placement, plan.pp, plan.stages(), static_cast<std::int64_t>(r))) {
      const auto& stage = of_like[like_[static_cast<std::size_t>(s)]].all;
      for (const auto& run : stages_[static_cast<std::size_t>(s)].runs) add(of_rank[r], *run.body, run.count);
      if (reduces_at_the_end) {
        for (const auto time : times_of(traffic.reduce_last(stage))) out.final_reduce[r].push_back(time);
      }
      for (const auto time : times_of(traffic.after_optimizer(stage))) out.final_gather[r].push_back(time);
    }
  }
  out.send_up.assign(pp, 0);
  out.send_down.assign(pp, 0);
  for (std::int64_t p = 0; p < plan.pp && plan.pp > 1; ++p) {
    const auto next = (p + 1) % plan.pp;
    out.send_up[static_cast<std::size_t>(p)] = send_time(plan, p, next, priced_bodies.send_bytes);
    out.send_down[static_cast<std::size_t>(p)] = send_time(plan, next, p, priced_bodies.send_bytes);
  }
  out.tied.reset();
  if (core::tied_copy(setting_.model, plan, schedule.placement)) {
    out.tied = state_time({OpKind::all_reduce, {}, setting_.recipe.gradient_reduce_bytes * priced_bodies.output_table,
                           {(plan.pp - 1) * plan.ranks_of_stage(), 2}});
  }
  out.norm = state_time({OpKind::all_reduce, {}, 4.0, {1, plan.gpus()}});
  const bool both_ways = schedule.placement == core::Placement::both_ways;
  out.copies_reduce.clear();
  out.copies_gather.clear();
  for (std::size_t r = 0; both_ways && r < pp / 2; ++r) {
    const auto stride = static_cast<std::int64_t>(pp - 1 - 2 * r) * plan.ranks_of_stage();
    const auto first = static_cast<std::int64_t>(r) * plan.ranks_of_stage();
    out.copies_reduce.push_back(copies_time(traffic.reduce_copies(of_rank[r].all, stride), first));
    out.copies_gather.push_back(copies_time(traffic.gather_copies(of_rank[r].all, stride), first));
  }
  out.optimizer.resize(pp);
  for (std::size_t r = 0; r < pp; ++r) {
    const double copies = both_ways && traffic.shards_optimizer() ? 2.0 : 1.0;
    const auto share = of_rank[r].share(copies);
    out.optimizer[r] = times_of(traffic.matrix_gather(share.all, share.matrix_squares)).sum();
    for (const auto& spec : core::optimizer_specs(share, plan, setting_.recipe)) {
      out.optimizer[r] += price_of(spec, {}, bench_.machine()).duration;
    }
  }
  out.pairs.clear();
  if (!schedule.pairs || out.sharded || pairs == Pairs::no) return;
  if (pairs == Pairs::least) bound_pairs(plan, out);
  else price_pairs(plan, priced_bodies, pairs == Pairs::alone, out);
}

}  // namespace simulator

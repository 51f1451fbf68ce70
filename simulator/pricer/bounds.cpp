#include "simulator/pricer.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "simulator/pricer/parts.h"

namespace simulator {

using core::Part;
using core::Recompute;
using core::SimTime;

namespace {

// What a rank has to do, alone on the GPU, and the highest rates at which its work overlaps.
struct RankLoad {
  SimTime compute = 0, data = 0;
  OverlapRates rates{0, 0};

  void add(const RankLoad& load, SimTime times) {
    compute += times * load.compute;
    data += times * load.data;
    raise(load.rates);
  }
  void raise(const OverlapRates& to) {
    rates.compute = std::max(rates.compute, to.compute);
    rates.communication = std::max(rates.communication, to.communication);
  }
  // With the shorter of the two overlapped from start to end, at the highest rates: what it takes from the other is made
  // up for alone. No order of the work is faster.
  SimTime at_least() const {
    constexpr auto full = OverlapRates::full_rate;
    if (data == 0 || compute == 0) return std::max(compute, data);
    const bool data_is_shorter = compute / rates.compute >= data / rates.communication;
    const auto overlapped = data_is_shorter ? compute + data * (full - rates.compute) / rates.communication
                                            : data + compute * (full - rates.communication) / rates.compute;
    return std::min(overlapped, compute + data);
  }
};

RankLoad load_of(const Pieces& pieces) {
  RankLoad out;
  for (const auto& p : pieces) {
    out.compute += p.compute;
    out.data += p.gathers.sum() + p.reduces.sum();
    out.raise(p.rates);
  }
  return out;
}

// Of a backward pass that is whole or in two parts, whichever takes less.
RankLoad lesser(const RankLoad& whole, const RankLoad& input, const RankLoad& weight) {
  RankLoad out{std::min(whole.compute, input.compute + weight.compute), std::min(whole.data, input.data + weight.data), whole.rates};
  out.raise(input.rates);
  out.raise(weight.rates);
  return out;
}

bool communicates(const Pieces& pieces) {
  return std::any_of(pieces.begin(), pieces.end(), [](const Piece& p) { return !p.gathers.empty() || !p.reduces.empty(); });
}

}  // namespace

SimTime Pricer::lower_bound(const core::ParallelPlan& plan, const CellTimes& times) const {
  const auto& schedule = schedule_of(plan);
  const auto pp = static_cast<std::size_t>(plan.pp);
  const auto m = plan.micro_batches();
  const auto ends = [&](const Pieces& edge, const Pieces& ordinary) -> const Pieces& { return edge.empty() ? ordinary : edge; };
  // The ways of the first micro-batch to a rank and of the last gradient from it, where the order of cells has them.
  const bool plain = schedule.placement == core::Placement::loop && !schedule.splits_backward && !schedule.pairs;
  const auto experts_rates = overlap_rates(experts_slowdown(plan.dispatch, bench_.curves()), 1.0);
  SimTime before = 0, after = 0, bound = 0, slowest_optimizer = 0;
  for (const auto t : times.optimizer) slowest_optimizer = std::max(slowest_optimizer, t);
  const SimTime visits = schedule.placement == core::Placement::both_ways ? m / 2 : m;  // of a stage of a rank, all as many
  for (std::size_t r = 0; r < pp; ++r) {
    RankLoad load;
    PartTime paired;  // of a micro-batch
    for (const auto stage : core::model_stages_of_rank(schedule.placement, plan.pp, plan.stages(), static_cast<std::int64_t>(r))) {
      if (visits == 0) continue;
      const auto s = static_cast<std::size_t>(stage), like = times.like_of(s);
      auto forward = load_of(times.forward[like]), first = load_of(ends(times.first_forward[like], times.forward[like]));
      auto backward = load_of(times.backward[like]), last = load_of(ends(times.last_backward[like], times.backward[like]));
      if (schedule.splits_backward) {
        const auto input = load_of(times.input_gradient[like]), weight = load_of(times.weight_gradient[like]);
        backward = lesser(backward, input, weight);
        last = lesser(last, input, load_of(ends(times.last_weight_gradient[like], times.weight_gradient[like])));
      }
      // As CellRunner::pair_of: cells that communicate run one by one.
      const auto& beside = schedule.pairs_input_gradients ? times.input_gradient[like] : times.backward[like];
      if (schedule.pairs && !times.sharded && !communicates(beside)) {
        paired += stage_times(s)[index_of(Part::forward)];
        paired += stage_times(s)[index_of(Part::backward)];
        for (auto* of_cell : {&forward, &first, &backward, &last}) of_cell->compute = 0, of_cell->raise(OverlapRates{});
      }
      load.add(forward, visits - 1);
      load.add(first, 1);
      load.add(backward, visits - 1);
      load.add(last, 1);
    }
    load.compute += visits * least_beside(paired.kernels, paired.experts, experts_rates);
    bound = std::max(bound, load.at_least());
    if (schedule.pairs || schedule.placement == core::Placement::both_ways) continue;
    bound = std::max(bound, before + load.compute + (plain ? after : 0));
    const auto like = times.like_of(r);
    before += least_of(times.forward[like], times.first_forward[like]) + times.send_up[r];
    after += least_of(times.backward[like], times.last_backward[like]) + times.send_down[r];
  }
  return bound + (plan.post_validation ? 0 : times.norm + slowest_optimizer);
}

SimTime Pricer::layout_bound(const core::ParallelPlan& plan) {
  const auto& schedule = schedule_of(plan);
  lay_out(plan, priced(plan));
  const bool both_ways = schedule.placement == core::Placement::both_ways;
  const bool plain = schedule.placement == core::Placement::loop && !schedule.splits_backward && !schedule.pairs;
  const auto visits = both_ways ? plan.micro_batches() / 2 : plan.micro_batches();
  const auto rates = overlap_rates(experts_slowdown(plan.dispatch, bench_.curves()), 1.0);
  SimTime before = 0, after = 0, bound = 0;
  for (std::int64_t r = 0; r < plan.pp; ++r) {
    SimTime alone = 0;
    PartTime both;
    for (const auto stage : core::model_stages_of_rank(schedule.placement, plan.pp, plan.stages(), r)) {
      const auto& parts = stage_times(static_cast<std::size_t>(stage));
      const auto &f = parts[index_of(Part::forward)], &b = parts[index_of(Part::backward)];
      const auto split = parts[index_of(Part::input_gradient)].time + parts[index_of(Part::weight_gradient)].time;
      alone += f.time + (schedule.splits_backward ? std::min(b.time, split) : b.time);
      both += f;
      both += b;
    }
    const auto paired = schedule.pairs ? least_beside(both.kernels, both.experts, rates) : alone;
    const auto work = visits * std::min(alone, paired);
    bound = std::max(bound, work);
    if (schedule.pairs || both_ways) continue;
    // The first stages' way to the rank, and for whole backwards the way back.
    bound = std::max(bound, before + work + (plain ? after : 0));
    before += stage_times(static_cast<std::size_t>(r))[index_of(Part::forward)].time;
    after += stage_times(static_cast<std::size_t>(r))[index_of(Part::backward)].time;
  }
  return bound;
}

// In a pair the kernels of both run one after another, and so do their all-to-alls, each at best beside the other.
void Pricer::bound_pairs(const core::ParallelPlan& plan, CellTimes& out) const {
  const auto& schedule = schedule_of(plan);
  const auto rates = overlap_rates(experts_slowdown(plan.dispatch, bench_.curves()), 1.0);
  const auto backward = schedule.pairs_input_gradients ? Part::input_gradient : Part::backward;
  const auto likes = first_like_.size();
  out.pairs_have_input_gradient = schedule.pairs_input_gradients;
  out.pairs.assign(likes * likes, {});
  for (std::size_t i = 0; i < likes; ++i) {
    for (std::size_t j = 0; j < likes; ++j) {
      auto both = like_times_[i][index_of(Part::forward)];
      both += like_times_[j][index_of(backward)];
      out.pairs[i * likes + j].compute = least_beside(both.kernels, both.experts, rates);
    }
  }
}

Pricer::WorkBound Pricer::work_bound(const core::ParallelPlan& plan) {
  const auto& bodies = priced(plan);
  WorkBound sum;
  SimTime experts = 0;
  const auto add = [&](const BodyPrice& body) {
    const auto& f = body.parts[index_of(Part::forward)];
    const auto& b = body.parts[index_of(Part::backward)];
    const auto& i = body.parts[index_of(Part::input_gradient)];
    const auto& w = body.parts[index_of(Part::weight_gradient)];
    sum.plain += f.time + std::min(b.time, i.time + w.time);
    sum.paired += f.kernels + std::min(b.kernels, i.kernels + w.kernels);
    experts += f.experts + b.experts;
  };
  // Where only some layers are recomputed, none is the least.
  const auto mode = index_of(plan.recompute_layers > 0 ? Recompute::none : plan.recompute);
  // But where what is kept is copied to the host, what is not kept may save more time than it takes to compute again.
  const bool either = plan.recompute_layers > 0 && plan.offload.activations;
  const auto least_of = [&](const BodyModes& modes) {
    auto body = modes[mode];
    if (!either) return body;
    const auto& full = modes[index_of(Recompute::full)];
    for (const auto part : all_parts) {
      auto& p = body.parts[index_of(part)];
      p.time = std::min(p.time, full.parts[index_of(part)].time);
    }
    return body;
  };
  add(bodies.embedding);
  add(bodies.output);
  for (std::int64_t i = 0; i < setting_.model.layers(); ++i) {
    const auto kind = setting_.model.layer_kind[static_cast<std::size_t>(i)];
    const bool high = setting_.recipe.keeps_high(i, setting_.model.layers());
    const auto& layer = (high ? bodies.high_kinds : bodies.kinds)[kind];
    for (std::int64_t loop = 0; loop < setting_.model.loops; ++loop) either ? add(least_of(layer)) : add(layer[mode]);
  }
  for (const auto& module : bodies.mtp) either ? add(least_of(module)) : add(module[mode]);
  const auto both = [](const BodyPrice& body) {
    return body.parts[index_of(Part::forward)].time + body.parts[index_of(Part::backward)].time;
  };
  const auto m = plan.micro_batches();
  const auto rates = overlap_rates(experts_slowdown(plan.dispatch, bench_.curves()), 1.0);
  WorkBound out{m * (sum.plain / plan.pp), m * (least_beside(sum.paired, experts, rates) / plan.pp), std::numeric_limits<SimTime>::max(), both(bodies.output),
                std::numeric_limits<std::int64_t>::max()};
  for (const auto* kinds : {&bodies.kinds, &bodies.high_kinds}) {
    for (const auto& kind : *kinds) {
      out.layer = std::min(out.layer, either ? both(least_of(kind)) : both(kind[mode]));
      out.saved = std::min(out.saved, kind[index_of(plan.recompute)].memory.saved());
    }
  }
  return out;
}

double Pricer::resident_at_least(const core::ParallelPlan& plan) {
  const auto& framework = setting_.framework_of(plan);
  const auto [found, added] =
      whole_.try_emplace({plan.tp, plan.ep, plan.etp, &framework == &setting_.sharded_framework});
  if (added) {
    auto small = plan;
    small.cp = small.dp = small.micro_batch = small.global_batch = 1;
    auto context = core::body_context(small, setting_.recipe, framework, setting_.model, setting_.seq, setting_.attention);
    const auto bodies = core::bodies_of(setting_.model, context);
    auto& whole = found->second;
    const auto add = [&](const core::Body& body) {
      whole.all += body.elements();
      whole.gemm += {body.gemm_parameters, body.expert_gemm_parameters};
    };
    add(bodies.embedding);
    add(bodies.output);
    for (std::int64_t i = 0; i < setting_.model.layers(); ++i) {
      const auto kind = setting_.model.layer_kind[static_cast<std::size_t>(i)];
      const bool high = setting_.recipe.keeps_high(i, setting_.model.layers());
      add((high ? bodies.high_kinds : bodies.kinds)[kind]);
    }
    for (const auto& module : bodies.mtp) add(module);
  }
  const auto share = found->second.share(static_cast<double>(plan.pp));
  double bytes = 0.0;
  for (const auto term : core::resident_memory(share, plan, setting_.recipe, framework)) bytes += static_cast<double>(term);
  // Each term is rounded up to a block.
  return bytes - static_cast<double>(core::memory_terms) * framework.allocation_unit.value;
}

std::int64_t round_of_short_tables(const core::Schedule& schedule, std::int64_t pp, std::int64_t micro_batches) {
  const bool plain = schedule.placement == core::Placement::loop && !schedule.splits_backward && !schedule.pairs;
  return plain ? core::steady_round(schedule, pp, micro_batches) : 0;
}

core::ScheduleTable short_table(const core::Schedule& schedule,
                                std::int64_t pp,
                                std::int64_t vpp,
                                std::int64_t micro_batches) {
  const auto round = round_of_short_tables(schedule, pp, micro_batches);
  if (round == 0) return schedule.table(pp, vpp, micro_batches);
  // Warm-up takes up to p micro-batches (1F1B) or two rounds (interleaved); a few rounds more show the period, and what is
  // left out is a multiple of it.
  const auto enough = (round == 1 ? 2 * pp : round) + 6 * round;
  const auto left_out = std::max<std::int64_t>(0, micro_batches - enough) / pp * pp;
  return schedule.table(pp, vpp, micro_batches - left_out);
}

}  // namespace simulator

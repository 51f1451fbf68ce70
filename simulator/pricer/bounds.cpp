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

  void add(const Pieces& pieces, SimTime times) {
    for (const auto& p : pieces) {
      compute += times * p.compute;
      data += times * (p.gathers.sum() + p.reduces.sum());
      rates.compute = std::max(rates.compute, p.rates.compute);
      rates.communication = std::max(rates.communication, p.rates.communication);
    }
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
  for (std::size_t r = 0; r < pp; ++r) {
    RankLoad load;
    PartTime paired;  // of a micro-batch
    for (const auto stage : core::model_stages_of_rank(schedule.placement, plan.pp, plan.stages(), static_cast<std::int64_t>(r))) {
      const auto s = static_cast<std::size_t>(stage);
      const SimTime visits = schedule.placement == core::Placement::both_ways ? m / 2 : m;
      if (visits == 0) continue;
      if (schedule.pairs && !times.sharded) {
        // All visits are as many.
        paired += stage_time(s, Part::forward);
        paired += stage_time(s, Part::backward);
        continue;
      }
      load.add(times.forward[s], visits - 1);
      load.add(ends(times.first_forward[s], times.forward[s]), 1);
      if (schedule.splits_backward) {
        load.compute += visits * std::min(compute_of(times.backward[s]),
                                          compute_of(times.input_gradient[s]) + compute_of(times.weight_gradient[s]));
        continue;
      }
      load.add(times.backward[s], visits - 1);
      load.add(ends(times.last_backward[s], times.backward[s]), 1);
    }
    const SimTime visits = schedule.placement == core::Placement::both_ways ? m / 2 : m;
    load.compute += visits * least_beside(paired.kernels, paired.experts, experts_rates);
    bound = std::max(bound, load.at_least());
    if (schedule.pairs || schedule.placement == core::Placement::both_ways) continue;
    bound = std::max(bound, before + load.compute + (plain ? after : 0));
    before += least_of(times.forward[r], times.first_forward[r]) + times.send_up[r];
    after += least_of(times.backward[r], times.last_backward[r]) + times.send_down[r];
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
      const auto s = static_cast<std::size_t>(stage);
      const auto f = stage_time(s, Part::forward), b = stage_time(s, Part::backward);
      const auto split = stage_time(s, Part::input_gradient).time + stage_time(s, Part::weight_gradient).time;
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
    before += stage_time(static_cast<std::size_t>(r), Part::forward).time;
    after += stage_time(static_cast<std::size_t>(r), Part::backward).time;
  }
  return bound;
}

// In a pair the kernels of both run one after another, and so do their all-to-alls, each at best beside the other.
void Pricer::bound_pairs(const core::ParallelPlan& plan, CellTimes& out) const {
  const auto& schedule = schedule_of(plan);
  const auto rates = overlap_rates(experts_slowdown(plan.dispatch, bench_.curves()), 1.0);
  const auto backward = schedule.pairs_input_gradients ? Part::input_gradient : Part::backward;
  const auto n = stages_.size();
  out.pairs_have_input_gradient = schedule.pairs_input_gradients;
  out.pairs.assign(n * n, {});
  for (std::int64_t r = 0; r < plan.pp; ++r) {
    const auto mine = core::model_stages_of_rank(schedule.placement, plan.pp, plan.stages(), r);
    for (const auto f : mine) {
      for (const auto b : mine) {
        const auto i = static_cast<std::size_t>(f), j = static_cast<std::size_t>(b);
        auto both = stage_time(i, Part::forward);
        both += stage_time(j, backward);
        out.pairs[i * n + j].compute = least_beside(both.kernels, both.experts, rates);
      }
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

#include "simulator/pricer.h"

#include <algorithm>

#include "core/error.h"

namespace simulator {

namespace {

using core::OpKind;
using core::Recompute;
using core::SimTime;

Recompute recompute_of(const core::ParallelPlan& plan, std::int64_t layer_in_stage) {
  if (plan.recompute != Recompute::full || plan.recompute_layers == 0) return plan.recompute;
  return layer_in_stage < plan.recompute_layers ? Recompute::full : Recompute::none;
}

bool gathers_ahead(const core::ParallelPlan& plan) {
  return (plan.zero == 1 || plan.zero == 2) && plan.dp > 1 && plan.overlap_parameters;
}

// Prices of a body's operations, and its chain with collectives marked as chain_time wants them.
struct PricedChain {
  std::vector<core::ChainOp> chain;
  std::vector<SimTime> durations;
};

PricedChain price_ops(const std::vector<core::BodyOp>& ops, const std::vector<core::CommGroup>& groups,
                      const Machine& machine, std::vector<std::pair<core::OpSpec, SimTime>>& known) {
  PricedChain out;
  for (const auto& op : ops) {
    auto spec = op.spec;
    if (op.scope == core::Scope::tensor) spec.group = 0;
    const auto found = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == spec; });
    SimTime duration = 0;
    if (found != known.end()) {
      duration = found->second;
    } else {
      duration = price_of(spec, groups, machine).duration;
      known.emplace_back(spec, duration);
    }
    auto index = static_cast<std::uint32_t>(out.durations.size());
    if (spec.group >= 0) index |= 1u << 31;
    out.chain.push_back({index, op.recompute, op.overlaps_next});
    out.durations.push_back(duration);
  }
  return out;
}

// Time of a body's operations, the host's launches included, and of the kernels in it.
std::pair<SimTime, SimTime> body_time(const std::vector<core::BodyOp>& ops, const std::vector<core::CommGroup>& groups,
                                      const Machine& machine, SimTime host,
                                      std::vector<std::pair<core::OpSpec, SimTime>>& known) {
  const auto priced = price_ops(ops, groups, machine, known);
  const auto gpu = chain_time(priced.chain, priced.durations);
  SimTime kernels = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].scope == core::Scope::none) kernels += priced.durations[i];
  }
  return {std::max(gpu, static_cast<SimTime>(priced.chain.size()) * host), kernels};
}

}  // namespace

Bench::Bench(const Setting& setting) : topology_(setting.cluster), curves_(Curves::load(setting.cluster.gpu)) {}

Pricer::Pricer(const Setting& setting, const Bench& bench)
    : setting_(setting),
      bench_(bench),
      slowdown_(slowdown_of(bench.curves())) {}

BodyPrice Pricer::price(const core::Body& body, const core::Framework& framework, std::int64_t tp) {
  const std::vector<core::CommGroup> groups = {{"tp", 0, 1, tp}};
  const auto host = core::to_sim_time(framework.host_per_kernel);
  std::vector<std::pair<core::OpSpec, SimTime>> known;
  BodyPrice p;
  std::tie(p.forward, p.forward_kernels) = body_time(body.forward, groups, bench_.machine(), host, known);
  std::tie(p.backward, p.backward_kernels) = body_time(body.backward, groups, bench_.machine(), host, known);
  p.memory = core::body_memory(body, framework);
  p.parameters = body.parameters;
  p.gemm_parameters = body.gemm_parameters;
  return p;
}

const PricedBodies& Pricer::bodies(const core::ParallelPlan& plan) {
  const bool sharded = plan.zero >= 2 && plan.dp > 1;
  const auto key = std::make_tuple(plan.tp, plan.sp && plan.tp > 1, plan.micro_batch, sharded);
  const auto found = bodies_.find(key);
  if (found != bodies_.end()) return found->second;
  const auto& framework = setting_.framework_of(plan);
  const auto context = core::body_context(plan, setting_.recipe, framework, setting_.model, setting_.seq, setting_.attention);
  const auto bodies = core::bodies_of(setting_.model, context);
  PricedBodies out;
  out.embedding = price(bodies.embedding, framework, plan.tp);
  out.output = price(bodies.output, framework, plan.tp);
  out.output_table = bodies.output_table;
  out.send_bytes = bodies.kinds.front().input.value;
  for (const auto& kind : bodies.kinds) {
    auto& prices = out.kinds.emplace_back();
    for (const auto mode : {Recompute::none, Recompute::selective, Recompute::full}) {
      prices[static_cast<std::size_t>(mode)] = price(core::with_recompute(kind, mode, plan.modules_of(mode)), framework, plan.tp);
    }
  }
  return bodies_.emplace(key, std::move(out)).first->second;
}

void Pricer::lay_out(const core::ParallelPlan& plan, const PricedBodies& bodies) {
  const auto layers = core::layers_of_stages(plan, setting_.model.layers());
  stages_.resize(static_cast<std::size_t>(plan.stages()));
  output_ = bodies.output;
  if (setting_.model.tied_embeddings && plan.pp > 1) output_.parameters += bodies.output_table;
  std::size_t layer = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    auto& stage = stages_[s];
    stage.runs.clear();
    if (s == 0) stage.add(&bodies.embedding);
    if (bodies.kinds.size() == 1) {
      add_alike(plan, bodies.kinds.front(), layers[s], stage.runs);
    } else {
      for (std::int64_t i = 0; i < layers[s]; ++i) {
        const auto kind = setting_.model.layer_kind[layer++];
        stage.add(&bodies.kinds[kind][static_cast<std::size_t>(recompute_of(plan, i))]);
      }
    }
    if (s + 1 == stages_.size()) stage.add(&output_);
  }
}

// Layers of one kind: those that are recomputed, then the rest.
void Pricer::add_alike(const core::ParallelPlan& plan, const std::array<BodyPrice, 3>& kind, std::int64_t layers,
                       std::vector<Run>& runs) {
  const bool partial = plan.recompute == Recompute::full && plan.recompute_layers > 0;
  const auto recomputed = partial ? std::min(layers, plan.recompute_layers) : 0;
  const auto rest = partial ? Recompute::none : plan.recompute;
  if (recomputed > 0) runs.push_back({&kind[static_cast<std::size_t>(Recompute::full)], recomputed});
  if (layers > recomputed) runs.push_back({&kind[static_cast<std::size_t>(rest)], layers - recomputed});
}

void Pricer::expand(const Stage& stage) {
  expanded_.clear();
  for (const auto& run : stage.runs) expanded_.insert(expanded_.end(), static_cast<std::size_t>(run.count), run.body);
}

void Pricer::resident_memory(const core::ParallelPlan& plan, std::vector<RankMemory>& out) {
  lay_out(plan, bodies(plan));
  const auto& framework = setting_.framework_of(plan);
  out.resize(static_cast<std::size_t>(plan.pp));
  for (std::size_t r = 0; r < out.size(); ++r) {
    core::RankParameters parameters;
    for (auto s = r; s < stages_.size(); s += out.size()) {
      for (const auto& run : stages_[s].runs) {
        parameters.all += static_cast<double>(run.count) * run.body->parameters;
        parameters.gemm += static_cast<double>(run.count) * run.body->gemm_parameters;
        parameters.largest_body = std::max(parameters.largest_body, run.body->parameters);
      }
    }
    out[r] = {};
    for (const auto bytes : core::resident_memory(parameters, plan, setting_.recipe, framework)) {
      out[r].resident += bytes;
    }
  }
}

void Pricer::memory(const core::ParallelPlan& plan, const core::ScheduleTable& table, std::vector<RankMemory>& out) {
  resident_memory(plan, out);
  const auto& framework = setting_.framework_of(plan);
  cells_.assign(stages_.size(), {});
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    for (const auto& run : stages_[s].runs) cells_[s].add(run.body->memory, run.count);
  }
  for (std::size_t r = 0; r < out.size(); ++r) {
    std::int64_t now = 0, peak = 0;
    for (const auto& a : table.ranks[r]) {
      const auto& cell = cells_[a.stage];
      if (a.kind == core::Action::Kind::forward) {
        peak = std::max(peak, now + cell.forward_peak);
        now += cell.saved();
      } else {
        now -= cell.saved();
        peak = std::max(peak, now + cell.backward_peak);
      }
    }
    out[r].short_lived = peak;
    out[r].lost = core::fragmentation(peak, framework);
  }
}

SimTime Pricer::data_time(OpKind kind, const core::ParallelPlan& plan, double bytes) {
  const auto key = std::make_tuple(bytes, kind, plan.tp, plan.dp);
  const auto found = data_times_.find(key);
  if (found != data_times_.end()) return found->second;
  const auto links = bench_.topology().group(0, plan.tp, plan.dp);
  const auto time = core::to_sim_time(collective_time(kind, core::Bytes{bytes}, links, bench_.curves()).cost.time);
  data_times_.emplace(key, time);
  return time;
}

SimTime Pricer::send_time(const core::ParallelPlan& plan, std::int64_t from, std::int64_t to, double bytes) {
  const auto stride = plan.tp * plan.dp;
  const auto key = std::make_tuple(from * stride, to * stride, bytes);
  const auto found = send_times_.find(key);
  if (found != send_times_.end()) return found->second;
  const auto links = bench_.topology().pair(from * stride, to * stride);
  const auto time =
      core::to_sim_time(collective_time(OpKind::send_receive, core::Bytes{bytes}, links, bench_.curves()).cost.time);
  send_times_.emplace(key, time);
  return time;
}

// As core::buckets_of.
std::vector<core::BodyRange> Pricer::buckets(const core::ParallelPlan& plan) const {
  const auto& framework = setting_.framework_of(plan);
  const double least =
      std::max(framework.bucket_parameters, framework.bucket_parameters_per_rank * static_cast<double>(plan.dp));
  std::vector<core::BodyRange> out;
  double sum = 0.0;
  auto end = expanded_.size();
  for (auto i = expanded_.size(); i-- > 0;) {
    sum += expanded_[i]->parameters;
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
  SimTime forward = 0, backward = 0, forward_kernels = 0, backward_kernels = 0;
  double parameters = 0.0;

  Piece forward_piece(const Slowdown& slowdown) const {
    return {-1, forward, -1, overlap_rates(slowdown, kernel_share(forward_kernels, forward))};
  }
  Piece backward_piece(const Slowdown& slowdown) const {
    return {-1, backward, -1, overlap_rates(slowdown, kernel_share(backward_kernels, backward))};
  }
};

RangePrice sum_of(const std::vector<const BodyPrice*>& bodies, core::BodyRange range) {
  RangePrice p;
  for (auto i = range.begin; i < range.end; ++i) {
    p.forward += bodies[i]->forward;
    p.backward += bodies[i]->backward;
    p.forward_kernels += bodies[i]->forward_kernels;
    p.backward_kernels += bodies[i]->backward_kernels;
    p.parameters += bodies[i]->parameters;
  }
  return p;
}

}  // namespace

SimTime Pricer::gather_time(const core::ParallelPlan& plan, double parameters) {
  return data_time(OpKind::all_gather, plan, setting_.recipe.parameter_gather_bytes * parameters);
}

SimTime Pricer::reduce_time(const core::ParallelPlan& plan, double parameters) {
  return data_time(plan.zero > 0 ? OpKind::reduce_scatter : OpKind::all_reduce, plan,
                   setting_.recipe.gradient_reduce_bytes * parameters);
}

// Zero 0 to 2: the first forward with the gather of updated parameters, and the last backward (zero 2: each) with the
// reduction of gradients, bucket by bucket.
void Pricer::edge_pieces(const core::ParallelPlan& plan, std::size_t s, CellTimes& out) {
  const bool reduces = plan.dp > 1 && (plan.zero == 2 || plan.overlap_gradients);
  if (!reduces && !gathers_ahead(plan)) return;
  expand(stages_[s]);
  const auto& bodies = expanded_;
  auto ranges = buckets(plan);
  if (reduces) {
    auto& pieces = plan.zero == 2 ? out.backward[s] : out.last_backward[s];
    pieces.clear();
    for (const auto range : ranges) {
      const auto sum = sum_of(bodies, range);
      pieces.push_back(sum.backward_piece(slowdown_));
      pieces.back().reduce = reduce_time(plan, sum.parameters);
    }
  }
  if (gathers_ahead(plan)) {
    std::reverse(ranges.begin(), ranges.end());
    for (const auto range : ranges) {
      const auto sum = sum_of(bodies, range);
      out.first_forward[s].push_back(sum.forward_piece(slowdown_));
      out.first_forward[s].back().gather = gather_time(plan, sum.parameters);
    }
  }
}

// Zero 3: every body is gathered before it runs, and its gradient reduced after.
void Pricer::sharded_pieces(const core::ParallelPlan& plan, std::size_t s, CellTimes& out) {
  expand(stages_[s]);
  const auto n = expanded_.size();
  out.forward[s].clear();
  out.backward[s].clear();
  for (std::size_t i = 0; i < n; ++i) {
    const auto sum = sum_of(expanded_, {i, i + 1});
    out.forward[s].push_back(sum.forward_piece(slowdown_));
    out.forward[s].back().gather = gather_time(plan, sum.parameters);
  }
  for (auto i = n; i-- > 0;) {
    const auto sum = sum_of(expanded_, {i, i + 1});
    out.backward[s].push_back(sum.backward_piece(slowdown_));
    out.backward[s].back().gather = gather_time(plan, sum.parameters);
    out.backward[s].back().reduce = reduce_time(plan, sum.parameters);
  }
}

void Pricer::cell_times(const core::ParallelPlan& plan, CellTimes& out) {
  const auto& priced = bodies(plan);
  lay_out(plan, priced);
  const auto n = stages_.size();
  const auto pp = static_cast<std::size_t>(plan.pp);
  out.sharded = plan.zero == 3 && plan.dp > 1;
  for (auto* pieces : {&out.forward, &out.first_forward, &out.backward, &out.last_backward}) {
    pieces->resize(n);
    for (auto& p : *pieces) p.clear();
  }
  std::vector<double> parameters(pp, 0.0);
  out.final_reduce.resize(pp);
  out.final_gather.resize(pp);
  for (std::size_t r = 0; r < pp; ++r) out.final_reduce[r].clear(), out.final_gather[r].clear();
  for (std::size_t s = 0; s < n; ++s) {
    RangePrice sum;
    for (const auto& run : stages_[s].runs) {
      sum.forward += run.count * run.body->forward;
      sum.backward += run.count * run.body->backward;
      sum.forward_kernels += run.count * run.body->forward_kernels;
      sum.backward_kernels += run.count * run.body->backward_kernels;
      sum.parameters += static_cast<double>(run.count) * run.body->parameters;
    }
    parameters[s % pp] += sum.parameters;
    if (out.sharded) {
      sharded_pieces(plan, s, out);
      continue;
    }
    out.forward[s].push_back(sum.forward_piece(slowdown_));
    out.backward[s].push_back(sum.backward_piece(slowdown_));
    edge_pieces(plan, s, out);
    if (plan.dp > 1 && plan.zero < 2 && !plan.overlap_gradients) {
      out.final_reduce[s % pp].push_back(reduce_time(plan, sum.parameters));
    }
    if (plan.dp > 1 && (plan.zero == 1 || plan.zero == 2) && !plan.overlap_parameters) {
      out.final_gather[s % pp].push_back(gather_time(plan, sum.parameters));
    }
  }
  out.send_forward.assign(pp, 0);
  out.send_backward.assign(pp, 0);
  for (std::int64_t p = 0; p < plan.pp && plan.pp > 1; ++p) {
    const auto next = (p + 1) % plan.pp;
    out.send_forward[static_cast<std::size_t>(p)] = send_time(plan, p, next, priced.send_bytes);
    out.send_backward[static_cast<std::size_t>(p)] = send_time(plan, next, p, priced.send_bytes);
  }
  out.tied.reset();
  if (setting_.model.tied_embeddings && plan.pp > 1) {
    const auto links = bench_.topology().group(0, (plan.pp - 1) * plan.tp * plan.dp, 2);
    const core::Bytes bytes{setting_.recipe.gradient_reduce_bytes * priced.output_table};
    out.tied = core::to_sim_time(collective_time(OpKind::all_reduce, bytes, links, bench_.curves()).cost.time);
  }
  core::ParallelPlan world = plan;
  world.tp = 1, world.dp = plan.gpus();
  out.norm = data_time(OpKind::all_reduce, world, 4.0);
  out.optimizer.resize(pp);
  for (std::size_t r = 0; r < pp; ++r) {
    const auto spec = core::optimizer_spec(parameters[r], plan, setting_.recipe);
    out.optimizer[r] = price_of(spec, {}, bench_.machine()).duration;
  }
}

namespace {

// What a rank has to do, alone on the GPU, and the highest rates at which its work overlaps.
struct RankLoad {
  SimTime compute = 0, data = 0;
  OverlapRates rates{0, 0};

  void add(const std::vector<Piece>& pieces, SimTime times) {
    for (const auto& p : pieces) {
      compute += times * p.compute;
      data += times * (std::max<SimTime>(0, p.gather) + std::max<SimTime>(0, p.reduce));
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

SimTime compute_of(const std::vector<Piece>& pieces) {
  SimTime sum = 0;
  for (const auto& p : pieces) sum += p.compute;
  return sum;
}

}  // namespace

SimTime Pricer::lower_bound(const core::ParallelPlan& plan, const CellTimes& times) const {
  const auto pp = static_cast<std::size_t>(plan.pp);
  const auto n = times.forward.size();
  const auto least = [&](const std::vector<Piece>& ordinary, const std::vector<Piece>& edge) {
    return edge.empty() ? compute_of(ordinary) : std::min(compute_of(ordinary), compute_of(edge));
  };
  const SimTime m = plan.micro_batches();
  SimTime before = 0, after = 0, bound = 0, slowest_optimizer = 0;
  for (const auto t : times.optimizer) slowest_optimizer = std::max(slowest_optimizer, t);
  for (std::size_t r = 0; r < pp; ++r) {
    RankLoad load;
    for (auto s = r; s < n; s += pp) {
      const auto& first = times.first_forward[s];
      const auto& last = times.last_backward[s];
      load.add(times.forward[s], m - 1);
      load.add(first.empty() ? times.forward[s] : first, 1);
      load.add(times.backward[s], m - 1);
      load.add(last.empty() ? times.backward[s] : last, 1);
    }
    bound = std::max({bound, before + load.compute + after, load.at_least()});
    before += least(times.forward[r], times.first_forward[r]) + times.send_forward[r];
    after += least(times.backward[r], times.last_backward[r]) + times.send_backward[r];
  }
  return bound + times.norm + slowest_optimizer;
}

core::ScheduleTable short_table(const core::Schedule& schedule,
                                std::int64_t pp,
                                std::int64_t vpp,
                                std::int64_t micro_batches) {
  const auto round = core::steady_round(schedule, pp, micro_batches);
  if (round == 0) return schedule.table(pp, vpp, micro_batches);
  // Warm-up takes up to p micro-batches (1F1B) or two rounds (interleaved); a few rounds more show the period, and what is
  // left out is a multiple of it.
  const auto enough = (round == 1 ? 2 * pp : round) + 6 * round;
  const auto left_out = std::max<std::int64_t>(0, micro_batches - enough) / pp * pp;
  return schedule.table(pp, vpp, micro_batches - left_out);
}

}  // namespace simulator

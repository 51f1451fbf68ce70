#include "simulator/pricer.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace simulator {

namespace {

using core::OpKind;
using core::Part;
using core::Recompute;
using core::SimTime;

constexpr Part all_parts[] = {Part::forward, Part::backward, Part::input_gradient, Part::weight_gradient};
constexpr std::size_t index_of(Part part) { return static_cast<std::size_t>(part); }
constexpr std::size_t index_of(Recompute mode) { return static_cast<std::size_t>(mode); }

const core::Schedule& schedule_of(const core::ParallelPlan& plan) {
  const auto* schedule = core::find_schedule(plan.schedule);
  CORE_ASSERT(schedule != nullptr);
  return *schedule;
}

// The communicators of bodies; a spec's group is its scope less one.
std::vector<core::CommGroup> groups_of(const core::ParallelPlan& plan) {
  std::vector<core::CommGroup> groups;
  const auto add = [&](std::string name, core::Scope scope) {
    const auto shape = core::shape_of(scope, plan);
    groups.push_back({std::move(name), 0, shape.stride, shape.size});
  };
  add("tp", core::Scope::tensor);
  add("cp", core::Scope::context);
  add("ep", core::Scope::expert);
  add("etp", core::Scope::expert_tensor);
  return groups;
}

std::uint32_t mark_of(core::Scope scope) {
  switch (scope) {
    case core::Scope::none: return 0;
    case core::Scope::tensor:
    case core::Scope::expert_tensor: return chain_mark(core::Stream::tensor);
    case core::Scope::context: return chain_mark(core::Stream::context);
    case core::Scope::expert: return chain_mark(core::Stream::expert);
  }
  CORE_ASSERT(false);
}

}  // namespace

Bench::Bench(const Setting& setting) : topology_(setting.cluster), curves_(Curves::load(setting.cluster.gpu)) {}

Pricer::Pricer(const Setting& setting, const Bench& bench)
    : setting_(setting),
      bench_(bench),
      slowdown_(slowdown_of(bench.curves())) {}

std::size_t Pricer::OpHash::operator()(const core::OpSpec& op) const {
  std::size_t hash = std::hash<std::string>()(op.name);
  for (const auto n : {op.m, op.n, op.k, op.batch, op.window, static_cast<std::int64_t>(op.bytes.value)}) {
    hash = hash * 0x9E3779B97F4A7C15ull + std::hash<std::int64_t>()(n);
  }
  return hash;
}

SimTime Pricer::op_time(const core::OpSpec& spec, const std::vector<core::CommGroup>& groups) {
  if (spec.group >= 0) {
    auto keyed = spec;
    // Groups of other plans have other sizes: they are part of the key.
    const auto& group = groups[static_cast<std::size_t>(spec.group)];
    keyed.name += '@' + std::to_string(group.stride) + 'x' + std::to_string(group.size);
    const auto [found, added] = op_times_.try_emplace(std::move(keyed), 0);
    if (added) found->second = price_of(spec, groups, bench_.machine()).duration;
    return found->second;
  }
  const auto [found, added] = op_times_.try_emplace(spec, 0);
  if (added) found->second = price_of(spec, groups, bench_.machine()).duration;
  return found->second;
}

PricedChain Pricer::price_chain(const core::Body& body, Part part, const core::ParallelPlan& plan) {
  const auto groups = groups_of(plan);
  PricedChain out;
  for (const auto* op : core::ops_of(body, part)) {
    auto spec = op->spec;
    if (op->scope != core::Scope::none) spec.group = static_cast<std::int16_t>(static_cast<int>(op->scope) - 1);
    const auto index = static_cast<std::uint32_t>(out.durations.size());
    out.ops.push_back({index | mark_of(op->scope), op->recompute, op->overlaps_next});
    out.durations.push_back(op_time(spec, groups));
  }
  return out;
}

// Time of a part's operations, the host's launches included, and of the kernels in it.
PartTime Pricer::part_time(const core::Body& body, Part part, const core::Framework& framework, const core::ParallelPlan& plan) {
  const auto priced = price_chain(body, part, plan);
  const auto gpu = chain_time(priced.ops, priced.durations);
  SimTime kernels = 0, experts = 0;
  const auto ops = core::ops_of(body, part);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i]->scope == core::Scope::none) kernels += priced.durations[i];
    if (ops[i]->scope == core::Scope::expert) experts += priced.durations[i];
  }
  const auto host = core::to_sim_time(framework.host(plan.graphs));
  return {std::max(gpu, static_cast<SimTime>(ops.size()) * host), kernels, experts};
}

BodyPrice Pricer::price(const core::Body& body, const core::Framework& framework, const core::ParallelPlan& plan) {
  BodyPrice p;
  for (const auto part : all_parts) p.parts[index_of(part)] = part_time(body, part, framework, plan);
  p.memory = core::body_memory(body, framework);
  p.elements = body.elements();
  p.gemm = {body.gemm_parameters, body.expert_gemm_parameters};
  p.newton_schulz = body.newton_schulz;
  return p;
}

void Pricer::forget_bodies() {
  constexpr std::size_t most = 30'000, most_chains = 400;  // of the order of 100 MB, and of 20 MB
  if (bodies_.size() >= most) bodies_.clear(), with_chains_.clear();
  if (with_chains_.size() < most_chains) return;
  for (auto* bodies : with_chains_) bodies->chains.reset();
  with_chains_.clear();
}

const PricedBodies& Pricer::bodies(const core::ParallelPlan& plan) { return priced(plan); }

PricedBodies& Pricer::priced(const core::ParallelPlan& plan) {
  const BodiesKey key{plan.tp,
                      plan.cp,
                      plan.ep,
                      plan.etp,
                      plan.micro_batch,
                      plan.sp && plan.tp > 1,
                      plan.cp_balanced,
                      &setting_.framework_of(plan) == &setting_.sharded_framework,
                      core::StateTraffic(plan, setting_.recipe).gathers_units(),
                      plan.overlap_tensor,
                      plan.overlap_experts,
                      plan.cp_kind,
                      plan.recompute == Recompute::modules ? plan.recompute_modules : 0,
                      plan.loss,
                      plan.dispatch,
                      plan.graphs};
  const auto [found, added] = bodies_.try_emplace(key);
  auto& out = found->second;
  if (!added) return out;
  const auto& framework = setting_.framework_of(plan);
  const auto bodies = setting_.bodies_of(plan);
  std::uint32_t chain = 0;
  const auto one = [&](const core::Body& body) {
    auto p = price(body, framework, plan);
    p.chain = chain++;
    return p;
  };
  const auto modes = [&](const core::Body& body) {
    BodyModes prices;
    for (const auto mode : {Recompute::none, Recompute::selective, Recompute::full, Recompute::modules}) {
      if (mode == Recompute::modules && key.modules == 0) continue;
      prices[index_of(mode)] = price(core::with_recompute(body, mode, plan.modules_of(mode)), framework, plan);
      prices[index_of(mode)].chain = chain + static_cast<std::uint32_t>(mode);
    }
    chain += recompute_modes;
    return prices;
  };
  out.embedding = one(bodies.embedding);
  out.output = one(bodies.output);
  out.output_table = bodies.output_table;
  out.send_bytes = bodies.kinds.front().input.value;
  for (const auto& kind : bodies.kinds) out.kinds.push_back(modes(kind));
  for (const auto& kind : bodies.high_kinds) out.high_kinds.push_back(modes(kind));
  for (const auto& module : bodies.mtp) out.mtp.push_back(modes(module));
  return out;
}

void Pricer::lay_out(const core::ParallelPlan& plan, const PricedBodies& bodies) {
  const auto layers = core::layers_of_stages(plan, setting_.model.layers());
  stages_.resize(static_cast<std::size_t>(plan.stages()));
  output_ = bodies.output;
  if (core::tied_copy(setting_.model, plan, schedule_of(plan).placement)) output_.elements.dense += bodies.output_table;
  std::size_t layer = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    auto& stage = stages_[s];
    stage.runs.clear();
    if (s == 0) stage.add(&bodies.embedding);
    if (bodies.kinds.size() == 1 && bodies.high_kinds.empty()) {
      add_alike(plan, bodies.kinds.front(), layers[s], stage.runs);
    } else {
      for (std::int64_t i = 0; i < layers[s]; ++i) {
        const auto kind = setting_.model.layer_kind[layer];
        const bool high = setting_.recipe.keeps_high(static_cast<std::int64_t>(layer++), setting_.model.layers());
        stage.add(&(high ? bodies.high_kinds : bodies.kinds)[kind][index_of(plan.recompute_of_layer(i))]);
      }
    }
    if (s + 1 != stages_.size()) continue;
    stage.add(&output_);
    for (const auto& module : bodies.mtp) stage.add(&module[index_of(plan.recompute_after_output())]);
  }
}

// Layers of one kind: those that are recomputed, then the rest.
void Pricer::add_alike(const core::ParallelPlan& plan, const BodyModes& kind, std::int64_t layers, std::vector<Run>& runs) {
  const bool partial = plan.recompute == Recompute::full && plan.recompute_layers > 0;
  const auto recomputed = partial ? std::min(layers, plan.recompute_layers) : 0;
  const auto rest = partial ? Recompute::none : plan.recompute;
  if (recomputed > 0) runs.push_back({&kind[index_of(Recompute::full)], recomputed});
  if (layers > recomputed) runs.push_back({&kind[index_of(rest)], layers - recomputed});
}

void Pricer::expand(const Stage& stage) {
  expanded_.clear();
  for (const auto& run : stage.runs) expanded_.insert(expanded_.end(), static_cast<std::size_t>(run.count), run.body);
}

namespace {

core::StateElements times(const core::StateElements& n, std::int64_t count) {
  return {n.dense * static_cast<double>(count), n.experts * static_cast<double>(count)};
}

void add(core::RankParameters& sum, const BodyPrice& body, std::int64_t count) {
  sum.all += times(body.elements, count);
  sum.gemm += times(body.gemm, count);
  sum.newton_schulz += static_cast<double>(count) * body.newton_schulz;
  sum.largest_body = std::max(sum.largest_body, body.elements.all());
}

}  // namespace

void Pricer::resident_memory(const core::ParallelPlan& plan, std::vector<RankMemory>& out) {
  lay_out(plan, bodies(plan));
  const auto& framework = setting_.framework_of(plan);
  const auto placement = schedule_of(plan).placement;
  out.resize(static_cast<std::size_t>(plan.pp));
  for (std::size_t r = 0; r < out.size(); ++r) {
    core::RankParameters parameters;
    for (const auto s : core::model_stages_of_rank(placement, plan.pp, plan.stages(), static_cast<std::int64_t>(r))) {
      for (const auto& run : stages_[static_cast<std::size_t>(s)].runs) {
        add(parameters, *run.body, run.count);
      }
    }
    out[r] = {};
    for (const auto bytes : core::resident_memory(parameters, plan, setting_.recipe, framework)) {
      out[r].resident += bytes;
    }
  }
}

namespace {

// Follows the short-lived memory of a rank through its actions, as the tensors of a graph at cell grain.
class MemoryWalk {
 public:
  void run(const core::CellMemory& cell, Part part) {
    begin(cell, part);
    end(cell, part);
  }
  // Two that overlap: both alive from start to end.
  void run_pair(const core::CellMemory& a, Part part_a, const core::CellMemory& b, Part part_b) {
    peak = std::max(peak, now + needs(a, part_a) + needs(b, part_b));
    end(a, part_a);
    end(b, part_b);
  }
  std::int64_t now = 0, peak = 0;

 private:
  // What a cell adds while it runs to what is there before.
  static std::int64_t needs(const core::CellMemory& cell, Part part) {
    switch (part) {
      case Part::forward: return cell.forward_peak;
      case Part::backward: return cell.backward_peak - cell.saved();
      case Part::input_gradient: return std::max(cell.held, cell.input_peak - cell.saved());
      case Part::weight_gradient: return 0;
    }
    CORE_ASSERT(false);
  }
  void begin(const core::CellMemory& cell, Part part) { peak = std::max(peak, now + needs(cell, part)); }
  void end(const core::CellMemory& cell, Part part) {
    switch (part) {
      case Part::forward: now += cell.saved(); break;
      case Part::backward: now -= cell.saved(); break;
      case Part::input_gradient: now += cell.left_for_weights() - cell.saved(); break;
      case Part::weight_gradient: now -= cell.left_for_weights(); break;
    }
  }
};

}  // namespace

void Pricer::memory(const core::ParallelPlan& plan, const core::ScheduleTable& table, std::vector<RankMemory>& out) {
  resident_memory(plan, out);
  short_lived_memory(plan, table, out);
}

void Pricer::short_lived_memory(const core::ParallelPlan& plan, const core::ScheduleTable& table, std::vector<RankMemory>& out) {
  const auto& framework = setting_.framework_of(plan);
  cells_.assign(stages_.size(), {});
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    for (const auto& run : stages_[s].runs) cells_[s].add(run.body->memory, run.count);
  }
  const auto cell_of = [&](const core::Action& a) -> const core::CellMemory& {
    return cells_[static_cast<std::size_t>(table.model_stage(a.stage))];
  };
  for (std::size_t r = 0; r < out.size(); ++r) {
    MemoryWalk walk;
    const auto& actions = table.ranks[r];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const auto& a = actions[i];
      if (a.with_next && i + 1 < actions.size()) {
        const auto& b = actions[++i];
        walk.run_pair(cell_of(a), a.kind, cell_of(b), b.kind);
      } else {
        walk.run(cell_of(a), a.kind);
      }
    }
    out[r].short_lived = walk.peak;
    out[r].lost = core::fragmentation(walk.peak, framework);
  }
}

SimTime Pricer::state_time(const core::StateOp& op) {
  const auto [found, added] = state_times_.try_emplace({op.bytes, op.kind, op.group}, 0);
  if (added) {
    const auto links = bench_.topology().group(0, op.group.stride, op.group.size);
    found->second = core::to_sim_time(collective_time(op.kind, core::Bytes{op.bytes}, links, bench_.curves()).cost.time);
  }
  return found->second;
}

// Between two pipeline ranks, of which the lower one begins at rank `first`: which links join them depends on it.
SimTime Pricer::copies_time(const core::StateOps& ops, std::int64_t first) const {
  SimTime sum = 0;
  for (const auto& op : ops) {
    const auto links = bench_.topology().group(first, op.group.stride, op.group.size);
    sum += core::to_sim_time(collective_time(op.kind, core::Bytes{op.bytes}, links, bench_.curves()).cost.time);
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
      core::to_sim_time(collective_time(OpKind::send_receive, core::Bytes{bytes}, links, bench_.curves()).cost.time);
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
  return {time.time, overlap_rates(slowdown_, kernel_share(time.kernels, time.time)), {}, {}};
}

// Nothing is gathered unit by unit: the first forward has the gather of updated parameters, and the last backward (with
// sharded gradients each) the reduction of gradients, bucket by bucket.
void Pricer::edge_pieces(const core::ParallelPlan& plan, const core::StateTraffic& traffic, std::size_t s, CellTimes& out) {
  const bool reduces = traffic.shared() && (traffic.reduces_each() || plan.overlap_gradients);
  if (!reduces && !traffic.gathers_ahead()) return;
  expand(stages_[s]);
  auto ranges = buckets(plan);
  if (reduces) {
    if (traffic.reduces_each()) out.backward[s].clear(), out.weight_gradient[s].clear();
    for (const auto range : ranges) {
      const auto sum = sum_of(expanded_, range);
      const auto each = times_of(traffic.reduce_each(sum.elements));
      auto last = each;
      for (const auto time : times_of(traffic.reduce_last(sum.elements))) last.add(time);
      const auto add = [&](Part part, Pieces& ordinary, Pieces& edge) {
        auto piece = piece_of(sum.parts[index_of(part)]);
        piece.reduces = each;
        if (traffic.reduces_each()) ordinary.push_back(piece);
        piece.reduces = last;
        edge.push_back(piece);
      };
      add(Part::backward, out.backward[s], out.last_backward[s]);
      add(Part::weight_gradient, out.weight_gradient[s], out.last_weight_gradient[s]);
    }
  }
  if (traffic.gathers_ahead()) {
    std::reverse(ranges.begin(), ranges.end());
    for (const auto range : ranges) {
      const auto sum = sum_of(expanded_, range);
      auto piece = piece_of(sum.parts[index_of(Part::forward)]);
      piece.gathers = times_of(traffic.updated_gather(sum.elements));
      out.first_forward[s].push_back(piece);
    }
  }
}

// Every body is gathered before it runs, and its gradient reduced after.
void Pricer::sharded_pieces(const core::ParallelPlan& plan, const core::StateTraffic& traffic, std::size_t s, CellTimes& out) {
  expand(stages_[s]);
  const auto n = expanded_.size();
  const bool reduces_last = traffic.reduces_each() || plan.overlap_gradients;
  for (std::size_t i = 0; i < n; ++i) {
    auto piece = piece_of(expanded_[i]->parts[index_of(Part::forward)]);
    piece.gathers = times_of(traffic.unit_gather(expanded_[i]->elements));
    out.forward[s].push_back(piece);
  }
  for (auto i = n; i-- > 0;) {
    const auto& body = *expanded_[i];
    const auto gathers = times_of(traffic.unit_gather(body.elements));
    const auto each = times_of(traffic.reduce_each(body.elements));
    auto last = each;
    for (const auto time : times_of(traffic.reduce_last(body.elements))) last.add(time);
    auto input = piece_of(body.parts[index_of(Part::input_gradient)]);
    input.gathers = gathers;
    out.input_gradient[s].push_back(input);
    const auto add = [&](Part part, Pieces& ordinary, Pieces& edge, bool is_gathered) {
      auto piece = piece_of(body.parts[index_of(part)]);
      if (is_gathered) piece.gathers = gathers;
      piece.reduces = each;
      ordinary.push_back(piece);
      if (reduces_last) piece.reduces = last;
      edge.push_back(piece);
    };
    add(Part::backward, out.backward[s], out.last_backward[s], true);
    add(Part::weight_gradient, out.weight_gradient[s], out.last_weight_gradient[s], false);
  }
}

void Pricer::cell_times(const core::ParallelPlan& plan, CellTimes& out, Pairs pairs) {
  auto& priced_bodies = priced(plan);
  const core::StateTraffic traffic(plan, setting_.recipe);
  const auto& schedule = schedule_of(plan);
  lay_out(plan, priced_bodies);
  const auto n = stages_.size();
  const auto pp = static_cast<std::size_t>(plan.pp);
  out.sharded = traffic.gathers_units();
  out.post_validation = plan.post_validation;
  for (auto* pieces : {&out.forward, &out.first_forward, &out.backward, &out.last_backward, &out.input_gradient,
                       &out.weight_gradient, &out.last_weight_gradient}) {
    pieces->resize(n);
    for (auto& p : *pieces) p.clear();
  }
  std::vector<core::RankParameters> of_stage(n), of_rank(pp);
  for (std::size_t s = 0; s < n; ++s) {
    RangePrice sum;
    for (const auto& run : stages_[s].runs) {
      for (std::size_t part = 0; part < sum.parts.size(); ++part) sum.parts[part] += run.body->parts[part] * run.count;
      add(of_stage[s], *run.body, run.count);
    }
    if (out.sharded) {
      sharded_pieces(plan, traffic, s, out);
      continue;
    }
    out.forward[s].push_back(piece_of(sum.parts[index_of(Part::forward)]));
    out.backward[s].push_back(piece_of(sum.parts[index_of(Part::backward)]));
    out.input_gradient[s].push_back(piece_of(sum.parts[index_of(Part::input_gradient)]));
    out.weight_gradient[s].push_back(piece_of(sum.parts[index_of(Part::weight_gradient)]));
    edge_pieces(plan, traffic, s, out);
  }
  out.final_reduce.assign(pp, {});
  out.final_gather.assign(pp, {});
  const bool reduces_at_the_end = traffic.shared() && !traffic.reduces_each() && !plan.overlap_gradients;
  const bool gathers_at_the_end = traffic.shards_optimizer() && !traffic.gathers_ahead();
  for (std::size_t r = 0; r < pp; ++r) {
    for (const auto s : core::model_stages_of_rank(schedule.placement, plan.pp, plan.stages(), static_cast<std::int64_t>(r))) {
      const auto& stage = of_stage[static_cast<std::size_t>(s)].all;
      for (const auto& run : stages_[static_cast<std::size_t>(s)].runs) add(of_rank[r], *run.body, run.count);
      if (reduces_at_the_end) {
        for (const auto time : times_of(traffic.reduce_last(stage))) out.final_reduce[r].push_back(time);
      }
      if (gathers_at_the_end) {
        for (const auto time : times_of(traffic.updated_gather(stage))) out.final_gather[r].push_back(time);
      }
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
    const auto spec = core::optimizer_spec(of_rank[r].share(copies), plan, setting_.recipe);
    out.optimizer[r] = price_of(spec, {}, bench_.machine()).duration;
  }
  out.pairs.clear();
  if (schedule.pairs && !out.sharded && pairs == Pairs::yes) price_pairs(plan, priced_bodies, out);
}

// Forward and backward of each two stages that can meet on a rank, operation by operation.
void Pricer::price_pairs(const core::ParallelPlan& plan, PricedBodies& bodies, CellTimes& out) {
  if (!bodies.chains) {
    bodies.chains = std::make_unique<PairChains>();
    with_chains_.push_back(&bodies);
    const auto model_bodies = setting_.bodies_of(plan);
    const auto host = core::to_sim_time(setting_.framework_of(plan).host(plan.graphs));
    const auto add = [&](const core::Body& body) {
      auto& parts = bodies.chains->bodies.emplace_back();
      for (const auto part : all_parts) {
        auto& chain = parts[index_of(part)] = price_chain(body, part, plan);
        if (chain.ops.empty() || host == 0) continue;
        // The wait for the host's launches, as core/graph/graph_writer.cpp has it.
        const auto wait = static_cast<SimTime>(chain.ops.size()) * host - chain_time(chain.ops, chain.durations);
        chain.ops.push_back({static_cast<std::uint32_t>(chain.durations.size()), false, false});
        chain.durations.push_back(std::max<SimTime>(0, wait));
      }
    };
    const auto add_modes = [&](const core::Body& body) {
      for (const auto mode : {Recompute::none, Recompute::selective, Recompute::full, Recompute::modules}) {
        add(core::with_recompute(body, mode, plan.modules_of(mode)));
      }
    };
    add(model_bodies.embedding);
    add(model_bodies.output);
    for (const auto& kind : model_bodies.kinds) add_modes(kind);
    for (const auto& kind : model_bodies.high_kinds) add_modes(kind);
    for (const auto& module : model_bodies.mtp) add_modes(module);
  }
  const auto chain_of = [&](std::size_t s, Part part) {
    PricedChain all;
    expand(stages_[s]);
    if (part != Part::forward) std::reverse(expanded_.begin(), expanded_.end());
    for (const auto* body : expanded_) {
      const auto& chain = bodies.chains->bodies[body->chain][index_of(part)];
      const auto base = static_cast<std::uint32_t>(all.durations.size());
      for (auto op : chain.ops) {
        op.spec += base;
        all.ops.push_back(op);
      }
      all.durations.insert(all.durations.end(), chain.durations.begin(), chain.durations.end());
    }
    return all;
  };
  const auto& schedule = schedule_of(plan);
  const auto n = stages_.size();
  const auto backward = schedule.pairs_input_gradients ? Part::input_gradient : Part::backward;
  out.pairs_have_input_gradient = schedule.pairs_input_gradients;
  out.pairs.assign(n * n, {});
  // Stages of the same bodies take the same time: each two of them are priced once.
  std::vector<std::size_t> alike(n);
  std::vector<PricedChain> forwards(n), backwards(n);
  for (std::size_t s = 0; s < n; ++s) {
    alike[s] = s;
    for (std::size_t t = 0; t < s && alike[s] == s; ++t) {
      if (alike[t] == t && stages_[t].runs == stages_[s].runs) alike[s] = t;
    }
    if (alike[s] == s) forwards[s] = chain_of(s, Part::forward), backwards[s] = chain_of(s, backward);
  }
  std::vector<bool> known(n * n, false);
  const auto time_of = [&](std::size_t i, std::size_t j) -> const Piece& {
    auto& piece = out.pairs[i * n + j];
    if (known[i * n + j]) return piece;
    known[i * n + j] = true;
    const auto kernels = stage_time(i, Part::forward).kernels + stage_time(j, backward).kernels;
    const PartTime time{
        pair_time(forwards[i].ops, backwards[j].ops, forwards[i].durations, backwards[j].durations), kernels, 0};
    return piece = piece_of(time);
  };
  for (std::int64_t r = 0; r < plan.pp; ++r) {
    const auto mine = core::model_stages_of_rank(schedule.placement, plan.pp, plan.stages(), r);
    for (const auto f : mine) {
      for (const auto b : mine) {
        const auto i = static_cast<std::size_t>(f), j = static_cast<std::size_t>(b);
        out.pairs[i * n + j] = time_of(alike[i], alike[j]);
      }
    }
  }
}

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

SimTime compute_of(const Pieces& pieces) {
  SimTime sum = 0;
  for (const auto& p : pieces) sum += p.compute;
  return sum;
}

}  // namespace

SimTime Pricer::lower_bound(const core::ParallelPlan& plan, const CellTimes& times) const {
  const auto& schedule = schedule_of(plan);
  const auto pp = static_cast<std::size_t>(plan.pp);
  const auto m = plan.micro_batches();
  const auto least = [&](const Pieces& ordinary, const Pieces& edge) {
    return edge.empty() ? compute_of(ordinary) : std::min(compute_of(ordinary), compute_of(edge));
  };
  const auto ends = [&](const Pieces& edge, const Pieces& ordinary) -> const Pieces& { return edge.empty() ? ordinary : edge; };
  // The ways of the first micro-batch to a rank and of the last gradient from it, where the order of cells has them.
  const bool plain = schedule.placement == core::Placement::loop && !schedule.splits_backward && !schedule.pairs;
  SimTime before = 0, after = 0, bound = 0, slowest_optimizer = 0;
  for (const auto t : times.optimizer) slowest_optimizer = std::max(slowest_optimizer, t);
  for (std::size_t r = 0; r < pp; ++r) {
    RankLoad load;
    SimTime all_to_alls = 0;
    for (const auto stage : core::model_stages_of_rank(schedule.placement, plan.pp, plan.stages(), static_cast<std::int64_t>(r))) {
      const auto s = static_cast<std::size_t>(stage);
      const SimTime visits = schedule.placement == core::Placement::both_ways ? m / 2 : m;
      if (visits == 0) continue;
      if (schedule.pairs && !times.sharded) {
        // Overlapped, at best the kernels alone are left, or the all-to-alls, which run one after another.
        auto both = stage_time(s, Part::forward);
        both += stage_time(s, Part::backward);
        load.compute += visits * both.kernels;
        all_to_alls += visits * both.experts;
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
    bound = std::max({bound, load.at_least(), all_to_alls});
    if (schedule.pairs || schedule.placement == core::Placement::both_ways) continue;
    bound = std::max(bound, before + load.compute + (plain ? after : 0));
    before += least(times.forward[r], times.first_forward[r]) + times.send_up[r];
    after += least(times.backward[r], times.last_backward[r]) + times.send_down[r];
  }
  return bound + (plan.post_validation ? 0 : times.norm + slowest_optimizer);
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
  add(bodies.embedding);
  add(bodies.output);
  for (std::int64_t i = 0; i < setting_.model.layers(); ++i) {
    const auto kind = setting_.model.layer_kind[static_cast<std::size_t>(i)];
    const bool high = setting_.recipe.keeps_high(i, setting_.model.layers());
    add((high ? bodies.high_kinds : bodies.kinds)[kind][mode]);
  }
  for (const auto& module : bodies.mtp) add(module[mode]);
  const auto both = [](const BodyPrice& body) {
    return body.parts[index_of(Part::forward)].time + body.parts[index_of(Part::backward)].time;
  };
  const auto m = plan.micro_batches();
  WorkBound out{m * (sum.plain / plan.pp), m * (std::max(sum.paired, experts) / plan.pp), std::numeric_limits<SimTime>::max(), both(bodies.output),
                std::numeric_limits<std::int64_t>::max()};
  for (const auto* kinds : {&bodies.kinds, &bodies.high_kinds}) {
    for (const auto& kind : *kinds) {
      out.layer = std::min(out.layer, both(kind[mode]));
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

PartTime Pricer::stage_time(std::size_t stage, Part part) const {
  PartTime sum;
  for (const auto& run : stages_[stage].runs) sum += run.body->parts[index_of(part)] * run.count;
  return sum;
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

#include "simulator/pricer.h"

#include <algorithm>

#include "core/error.h"
#include "core/graph/launches.h"
#include "simulator/pricer/parts.h"
#include "simulator/spread.h"

namespace simulator {

using core::Part;
using core::Recompute;
using core::SimTime;

namespace {

// The communicators of bodies; a spec's group is its scope less one.
std::vector<core::CommGroup> groups_of(const core::ParallelPlan& plan) {
  std::vector<core::CommGroup> groups;
  groups.reserve(4);
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

// Layers that run again: their weights count once.
void copy_without_weights(const std::vector<BodyModes>& kinds, std::size_t mode, std::vector<BodyModes>& again) {
  again.resize(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    auto& body = again[i][mode] = kinds[i][mode];
    body.elements = body.gemm = {}, body.newton_schulz = 0.0;
    body.matrix_squares = body.newton_schulz_elements = {};
  }
}

}  // namespace

void calibrate(Setting& setting, const SystemCalibration& calibration) {
  CORE_ASSERT(!setting.calibrated);
  setting.calibrated = calibration;
  for (auto* framework : {&setting.framework, &setting.sharded_framework}) {
    for (auto* time : {&framework->host_per_launch, &framework->host_per_launch_graphs, &framework->step_overhead})
      *time = calibration.host * *time;
  }
}

Bench::Bench(const Setting& setting) : Bench(setting, Curves::load(setting.cluster.gpu)) {}

Bench::Bench(const Setting& setting, Curves curves)
    : topology_(setting.cluster), curves_(std::move(curves)), slowest_(slowest_of(setting.gpus)) {
  if (setting.calibrated) corrections_ = {setting.calibrated->kernels, setting.calibrated->communication};
}

namespace {

bool casts_each_step(const Setting& setting) {
  const auto& passes = setting.recipe.passes;
  return std::any_of(passes.begin(), passes.end(),
                     [](const core::CastPass& pass) { return pass.when == core::CastPass::When::step; });
}

}  // namespace

Pricer::Pricer(const Setting& setting, const Bench& bench)
    : setting_(setting),
      bench_(bench),
      casts_each_step_(casts_each_step(setting)),
      slowdown_(slowdown_of(bench.curves())) {}

std::size_t Pricer::OpHash::operator()(const OpView& view) const {
  const auto& op = *view.spec;
  // Most names go with a shape: they are compared, but add nothing to the hash.
  auto hash = static_cast<std::size_t>(op.kind) << 8 | static_cast<std::size_t>(op.format);
  for (const auto n : {op.m, op.n, op.k, op.batch, op.window, static_cast<std::int64_t>(op.bytes.value), view.stride, view.size}) {
    hash = (hash ^ (hash >> 32)) * 0x9E3779B97F4A7C15ull + static_cast<std::size_t>(n);
  }
  return hash;
}

// Of a collective, with the group it runs in; groups of other plans have other sizes, so they are part of the key.
SimTime Pricer::op_time(const core::OpSpec& spec, const core::CommGroup* group) {
  OpView view{&spec};
  if (group != nullptr) view.stride = group->stride, view.size = group->size;
  const auto found = op_times_.find(view);
  if (found != op_times_.end()) return found->second;
  SimTime time = 0;
  if (group == nullptr) {
    time = price_of(spec, {}, bench_.machine()).duration;
  } else {
    auto bound = spec;
    bound.group = 0;
    time = price_of(bound, {*group}, bench_.machine()).duration;
  }
  op_times_.emplace(OpKey{spec, view.stride, view.size}, time);
  return time;
}

void Pricer::append(const core::BodyOp& op, const std::vector<core::CommGroup>& groups, PricedChain& out) {
  const auto index = static_cast<std::uint32_t>(out.durations.size());
  out.ops.push_back({index | mark_of(op.scope), op.recompute, op.overlaps_next});
  const auto* group = op.scope == core::Scope::none ? nullptr : &groups[static_cast<std::size_t>(op.scope) - 1];
  out.durations.push_back(op_time(op.spec, group));
  out.slowed.push_back(group == nullptr ? slowed_kernel(out.durations.back(), slowdown_) : out.durations.back());
}

PricedChain Pricer::price_chain(const core::Body& body, Part part, const core::ParallelPlan& plan) {
  const auto groups = groups_of(plan);
  PricedChain out;
  const auto ops = core::ops_of(body, part);
  out.ops.reserve(ops.size());
  out.durations.reserve(ops.size()), out.slowed.reserve(ops.size());
  for (const auto* op : ops) append(*op, groups, out);
  return out;
}

// Times of a body's parts: of each the operations, the host's launches included, and the kernels in it. The parts of a split
// backward have their operations from the whole one. `forward`: the forward's time where it is known, which recompute does not
// change.
PartTimes Pricer::part_times(const core::Body& body, const core::Framework& framework, const core::ParallelPlan& plan,
                             const PartTime* forward) {
  const auto groups = groups_of(plan);
  const auto host = core::to_sim_time(framework.host(plan.graphs));
  const auto slowdown = experts_slowdown(plan.dispatch, bench_.curves());
  PartTimes out;
  const auto time_of = [&](const std::vector<core::BodyOp>& ops, Part part) {
    chain_part_.clear();
    core::LaunchCount launches(framework.launches, plan.graphs);
    PartTime time;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (part == Part::input_gradient && ops[i].weight_gradient) continue;
      if (part == Part::weight_gradient && !ops[i].weight_gradient) continue;
      chain_part_.push_back(chain_.ops[i]);
      launches.add(ops[i]);
      if (ops[i].scope == core::Scope::none) time.kernels += chain_.durations[i];
      if (ops[i].scope == core::Scope::expert) time.experts += chain_.durations[i];
    }
    const auto gpu = chain_time(chain_part_, chain_.durations, slowdown);
    time.time = std::max(host_end(framework, gpu, launches.total() * host), offload_time(body, part));
    // The waits for the host and for a copy follow the kernels.
    time.slowed = chain_time(chain_part_, chain_.slowed, slowdown) + time.time - gpu;
    out[index_of(part)] = time;
  };
  const auto price_all = [&](const std::vector<core::BodyOp>& ops) {
    chain_.ops.clear(), chain_.durations.clear(), chain_.slowed.clear();
    for (const auto& op : ops) append(op, groups, chain_);
  };
  if (forward != nullptr) {
    out[index_of(Part::forward)] = *forward;
  } else {
    price_all(body.forward);
    time_of(body.forward, Part::forward);
  }
  price_all(body.backward);
  for (const auto part : {Part::backward, Part::input_gradient, Part::weight_gradient}) time_of(body.backward, part);
  return out;
}

// Of the copy beside a part of a body, as core/graph/graph_writer.cpp has it.
SimTime Pricer::offload_time(const core::Body& body, Part part) {
  if (body.offloaded.value <= 0.0 || part == Part::weight_gradient) return 0;
  core::OpSpec spec;
  spec.kind = part == Part::forward ? core::OpKind::copy_to_host : core::OpKind::copy_to_device;
  spec.bytes = body.offloaded;
  return op_time(spec, nullptr);
}

BodyPrice Pricer::price(const core::Body& body, const core::Framework& framework, const core::ParallelPlan& plan,
                        const PartTime* forward) {
  BodyPrice p;
  p.parts = part_times(body, framework, plan, forward);
  p.memory = core::body_memory(body, framework);
  p.gather_buffer = body.gather_buffer.value, p.output_operands = body.output_operands.value;
  p.elements = body.elements();
  p.gemm = {body.gemm_parameters, body.expert_gemm_parameters};
  p.newton_schulz = body.newton_schulz;
  p.matrix_squares = body.matrix_squares, p.newton_schulz_elements = body.newton_schulz_elements;
  p.layer_weights = body.layer_weights, p.output_weight = body.output_weight;
  return p;
}

void Pricer::forget_bodies() {
  constexpr std::size_t most = 30'000, most_chains = 400;  // of the order of 100 MB, and of 20 MB
  if (bodies_.size() >= most) bodies_.clear(), with_chains_.clear(), laid_ = {};
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
                      casts_each_step_ && core::StateTraffic(plan, setting_.recipe).gathers_units(),
                      setting_.framework_of(plan).unit_copies.any() && plan.zero >= 2,
                      plan.overlap_tensor,
                      plan.overlap_experts,
                      plan.offload.activations,
                      plan.cp_kind,
                      plan.recompute == Recompute::modules ? plan.recompute_modules : 0,
                      plan.loss,
                      plan.dispatch,
                      plan.graphs};
  const auto [found, added] = bodies_.try_emplace(key);
  auto& out = found->second;
  if (added && key.modules != 0) {
    // Without recompute they are those of the plan that differs in it only.
    auto base = plan;
    base.recompute = Recompute::none, base.recompute_modules = 0, base.recompute_layers = 0;
    const auto& without = priced(base);
    out.embedding = without.embedding, out.output = without.output;
    out.kinds = without.kinds, out.high_kinds = without.high_kinds, out.mtp = without.mtp;
    out.has_mode[index_of(Recompute::none)] = true;
    out.output_table = without.output_table, out.send_bytes = without.send_bytes;
  }
  for (const auto mode : {Recompute::none, plan.recompute}) {
    if (!out.has_mode[index_of(mode)]) price_mode(plan, mode, key, out);
  }
  return out;
}

// Bodies as they are without recompute.
const core::ModelBodies& Pricer::bodies_to_price(const core::ParallelPlan& plan, BodiesKey key) {
  constexpr std::size_t most = 8;
  key.modules = 0;
  const auto found = recent_.find(key);
  if (found != recent_.end()) return found->second;
  if (recent_.size() >= most) recent_.clear();
  return recent_.emplace(key, setting_.bodies_of(plan)).first->second;
}

// Bodies of one mode; the first time those that have none too, and what does not depend on it.
void Pricer::price_mode(const core::ParallelPlan& plan, Recompute mode, const BodiesKey& key, PricedBodies& out) {
  const auto& framework = setting_.framework_of(plan);
  const auto& bodies = bodies_to_price(plan, key);
  const bool has_none = out.has_mode[index_of(Recompute::none)];
  std::uint32_t chain = 0;
  const auto one = [&](const core::Body& body) {
    auto p = price(body, framework, plan, nullptr);
    p.chain = chain++;
    return p;
  };
  if (out.kinds.empty()) {
    out.embedding = one(bodies.embedding);
    out.output = one(bodies.output);
    out.output_table = bodies.output_table;
    out.send_bytes = bodies.kinds.front().input.value;
    out.kinds.resize(bodies.kinds.size()), out.high_kinds.resize(bodies.high_kinds.size()), out.mtp.resize(bodies.mtp.size());
  }
  chain = 2;
  const auto modes = [&](const std::vector<core::Body>& all, std::vector<BodyModes>& prices) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto& p = prices[i][index_of(mode)];
      // Recompute changes what a forward copies to the host, and nothing else of it.
      const bool known = has_none && mode != Recompute::none && !plan.offload.activations;
      const auto* forward = known ? &prices[i][index_of(Recompute::none)].parts[index_of(Part::forward)] : nullptr;
      const bool as_it_is = mode == Recompute::none && !plan.offload.activations;
      p = as_it_is ? price(all[i], framework, plan, forward)
                   : price(core::layer_body(all[i], mode, plan), framework, plan, forward);
      p.chain = chain + static_cast<std::uint32_t>(mode);
      chain += recompute_modes;
    }
  };
  modes(bodies.kinds, out.kinds);
  modes(bodies.high_kinds, out.high_kinds);
  modes(bodies.mtp, out.mtp);
  if (setting_.model.loops > 1) {
    copy_without_weights(out.kinds, index_of(mode), out.kinds_again);
    copy_without_weights(out.high_kinds, index_of(mode), out.high_kinds_again);
  }
  out.has_mode[index_of(mode)] = true;
}

void Pricer::lay_out(const core::ParallelPlan& plan, const PricedBodies& bodies) {
  const bool tied = core::tied_copy(setting_.model, plan, schedule_of(plan).placement);
  Laid laid{&bodies, plan.pp, plan.vpp, plan.layout, plan.layers, plan.recompute, plan.recompute_layers, tied};
  if (laid == laid_) return;
  laid_ = std::move(laid);
  const auto layers = core::layers_of_stages(plan, setting_.model.layers());
  stages_.resize(static_cast<std::size_t>(plan.stages()));
  output_ = bodies.output;
  if (tied) output_.elements.dense += bodies.output_table;
  std::size_t layer = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    auto& stage = stages_[s];
    stage.runs.clear();
    if (s == 0) stage.add(&bodies.embedding);
    for (std::int64_t loop = 0; loop < setting_.model.loops; ++loop) {
      const auto& kinds = loop == 0 ? bodies.kinds : bodies.kinds_again;
      const auto& high_kinds = loop == 0 ? bodies.high_kinds : bodies.high_kinds_again;
      if (kinds.size() == 1 && high_kinds.empty()) {
        add_alike(plan, kinds.front(), layers[s], stage.runs);
        continue;
      }
      for (std::int64_t i = 0; i < layers[s]; ++i) {
        const auto at = layer + static_cast<std::size_t>(i);
        const auto kind = setting_.model.layer_kind[at];
        const bool high = setting_.recipe.keeps_high(static_cast<std::int64_t>(at), setting_.model.layers());
        stage.add(&(high ? high_kinds : kinds)[kind][index_of(plan.recompute_of_layer(i))]);
      }
    }
    layer += static_cast<std::size_t>(layers[s]);
    if (s + 1 != stages_.size()) continue;
    stage.add(&output_);
    for (const auto& module : bodies.mtp) stage.add(&module[index_of(plan.recompute_after_output())]);
  }
  find_alike();
}

void Pricer::find_alike() {
  like_.clear(), first_like_.clear(), like_times_.clear();
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const auto& runs = stages_[s].runs;
    // Most are like the one before.
    auto found = first_like_.size();
    while (found > 0 && stages_[first_like_[found - 1]].runs != runs) --found;
    if (found > 0) {
      like_.push_back(static_cast<std::uint32_t>(found - 1));
      continue;
    }
    like_.push_back(static_cast<std::uint32_t>(first_like_.size()));
    first_like_.push_back(s);
    auto& sum = like_times_.emplace_back();
    for (const auto& run : runs) {
      for (std::size_t part = 0; part < sum.size(); ++part) sum[part] += run.body->parts[part] * run.count;
    }
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

}  // namespace simulator

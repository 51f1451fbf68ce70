#include "planner/space.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/plan/dimension.h"
#include "core/plan/schedule.h"

namespace planner {

namespace {

using core::Layout;
using core::ParallelPlan;
using core::Recompute;

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    out.push_back(d);
    if (d != n / d) out.push_back(n / d);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// A part of a sequence that a context-parallel rank has, at least: shorter ones leave kernels without work.
constexpr std::int64_t fewest_tokens = 1024;

std::vector<std::int64_t> up_to(std::int64_t most, std::vector<std::int64_t> values) {
  std::erase_if(values, [&](std::int64_t v) { return v > most; });
  return values;
}

bool fixes(const Question& q, std::string_view key) { return q.fixed.has(key); }

// Routed experts of the model; 0 = none.
std::int64_t experts_of(const core::ModelSpec& model) {
  for (const auto& layer : model.kinds) {
    for (const auto& block : layer.blocks) {
      if (block.kind == "moe") return block.shape.at("experts");
    }
  }
  return 0;
}

bool has_block(const core::ModelSpec& model, std::string_view kind) {
  for (const auto& layer : model.kinds) {
    for (const auto& block : layer.blocks) {
      if (block.kind == kind) return true;
    }
  }
  return false;
}

// A short name for a reason, so that like ones are counted together: numbers become N.
std::string kind_of(const std::string& dimension, const std::string& reason) {
  std::string words;
  for (const char c : reason) {
    if (c >= '0' && c <= '9') {
      if (words.empty() || words.back() != 'N') words += 'N';
    } else {
      words += c;
    }
  }
  return dimension + ": " + words;
}

std::vector<std::string> schedules_of(const Question& q, bool has_experts) {
  if (q.fixed.has_schedule) return {q.fixed.plan.schedule};
  std::vector<std::string> out;
  for (const auto* s : core::schedules::all()) {
    const bool overlaps_experts = s->pairs && s->placement == core::Placement::loop;
    if (overlaps_experts && !has_experts) continue;
    const auto stages = s->stages_a_rank;
    if (fixes(q, "vpp") && stages && *stages != q.fixed.plan.vpp) continue;
    if (fixes(q, "vpp") && !stages && q.fixed.plan.vpp == 1) continue;
    out.emplace_back(s->name);
  }
  return out;
}

std::vector<Sharding> shardings_of(const Question& q) {
  if (q.fixed.has_zero) return {{q.fixed.plan.zero, false}};
  return {{0, false}, {1, false}, {2, false}, {3, false}, {3, true}};
}

std::vector<RecomputeChoice> recompute_of(const Question& q) {
  if (fixes(q, "recompute")) return {{q.fixed.plan.recompute, q.fixed.plan.recompute_modules}};
  // What costs little time: norms and activations, and the up-projections of latent attention (arXiv 2412.19437, section
  // 3.2.3); then the dense and expert feed-forwards too.
  core::Modules cheap = core::modules::norm | core::modules::activation;
  if (has_block(*q.model, "mla")) cheap |= core::modules::mla_up;
  std::vector<RecomputeChoice> out = {{Recompute::none, 0}, {Recompute::selective, 0}, {Recompute::modules, cheap}};
  if (experts_of(*q.model) > 0) out.push_back({Recompute::modules, cheap | core::modules::moe});
  out.push_back({Recompute::full, 0});
  return out;
}

}  // namespace

Axes axes_of(const Question& q) {
  const auto& fixed = q.fixed.plan;
  const auto layers = q.model->layers(), experts = experts_of(*q.model);
  const auto one = std::vector<std::int64_t>{1};
  Axes axes;
  axes.tp = fixes(q, "tp") ? std::vector{fixed.tp} : up_to(2 * q.gpus_per_node, divisors(q.gpus));
  axes.sp = fixes(q, "sp") ? std::vector<bool>{fixed.sp} : std::vector<bool>{false, true};
  axes.cp = fixes(q, "cp") ? std::vector{fixed.cp}
                           : up_to(std::max<std::int64_t>(1, q.seq / fewest_tokens), divisors(q.gpus));
  axes.cp_kinds = fixes(q, "cp") ? std::vector{fixed.cp_kind}
                                 : std::vector{core::ContextParallel::ring, core::ContextParallel::all_gather,
                                               core::ContextParallel::ulysses};
  axes.pp = fixes(q, "pp") ? std::vector{fixed.pp} : divisors(q.gpus);
  std::erase_if(axes.pp, [&](std::int64_t pp) { return pp > layers + 2; });
  axes.ep = fixes(q, "ep") ? std::vector{fixed.ep} : experts > 0 ? divisors(experts) : one;
  axes.etp = fixes(q, "etp") ? std::vector{fixed.etp} : experts > 0 ? std::vector<std::int64_t>{1, 0} : one;
  axes.micro_batch = fixes(q, "mb") ? std::vector{fixed.micro_batch} : divisors(q.global_batch);
  axes.schedules = schedules_of(q, experts > 0);
  if (fixes(q, "vpp")) {
    axes.vpp = {fixed.vpp};
  } else {
    // A virtual stage has a layer at least, the embedding's and the output's excepted.
    for (std::int64_t v = 2; v <= (layers + 2) / 2; ++v) axes.vpp.push_back(v);
  }
  axes.layouts = {Layout::even, Layout::slots};
  axes.shardings = shardings_of(q);
  axes.recompute = recompute_of(q);
  axes.offloads = fixes(q, "offload") ? std::vector{fixed.offload} : std::vector{core::Offload{}};
  if (!fixes(q, "offload")) axes.offloads.insert(axes.offloads.end(), q.allowed.begin(), q.allowed.end());
  return axes;
}

std::vector<core::Offload> all_offloads() {
  return {{true, false, false}, {true, true, false}, {false, false, true}, {true, false, true}, {true, true, true}};
}

core::Dispatch best_dispatch(const simulator::Curves& curves) {
  return curves.find("overlap.one_sided.compute_slowdown") ? core::Dispatch::one_sided : core::Dispatch::nccl;
}

Space::Space(const Question& question, const Axes& axes)
    : q_(question), axes_(axes), has_experts_(experts_of(*question.model) > 0) {
  walk();
}

void Space::refuse(const std::string& dimension, const std::string& reason, const ParallelPlan& plan, std::int64_t count) {
  auto& entry = illegal_[kind_of(dimension, reason)];
  if (entry.count == 0) entry.example = core::to_text(plan);
  entry.count += count;
}

void Space::walk() {
  ParallelPlan plan = q_.fixed.plan;
  plan.global_batch = q_.global_batch;
  plan.recipe = q_.recipe;
  plan.vpp = 1;
  for (const auto tp : axes_.tp) {
    for (const auto cp : axes_.cp) {
      if (q_.gpus % (tp * cp) != 0) continue;
      plan.tp = tp, plan.cp = cp;
      walk_degrees(plan);
    }
  }
}

void Space::walk_degrees(ParallelPlan plan) {
  const std::vector<core::ContextParallel> one{core::ContextParallel::ring};
  for (const auto kind : plan.cp > 1 ? axes_.cp_kinds : one) {
    plan.cp_kind = kind;
    if (plan.cp == 1) plan.cp_balanced = true;
    for (const bool sp : axes_.sp) {
      if (sp && plan.tp == 1) continue;
      plan.sp = sp;
      walk_experts(plan);
    }
  }
}

void Space::walk_experts(ParallelPlan plan) {
  for (const auto ep : axes_.ep) {
    for (const auto etp : axes_.etp) {
      if (etp == 0 && plan.tp == 1) continue;  // the same plan as etp=1
      plan.ep = ep, plan.etp = etp == 0 ? plan.tp : etp;
      if (!fixes(q_, "dispatch")) plan.dispatch = ep > 1 ? q_.dispatch : core::Dispatch::nccl;
      walk_micro_batches(plan);
    }
  }
}

void Space::walk_micro_batches(ParallelPlan plan) {
  for (const auto mb : axes_.micro_batch) {
    plan.micro_batch = mb;
    walk_pipelines(plan);
  }
}

// Last, so that plans whose layers take the same time stand together.
void Space::walk_pipelines(ParallelPlan plan) {
  plan.zero = 0, plan.shard = {};
  const auto ranks = plan.tp * plan.cp;
  for (const auto pp : axes_.pp) {
    if (q_.gpus % (ranks * pp) != 0) continue;
    plan.pp = pp, plan.dp = q_.gpus / (ranks * pp);
    if (fixes(q_, "dp") && q_.fixed.plan.dp != plan.dp) continue;
    if (legal(plan)) walk_shardings(plan);
  }
}

// All but layouts, schedules and sharding.
bool Space::legal(const ParallelPlan& plan) {
  for (const auto* dimension : core::dimensions::all()) {
    if (dimension->name == "pp" || dimension->name == "zero") continue;
    if (const auto reason = dimension->why_not(*q_.model, plan, q_.seq)) {
      refuse(std::string(dimension->name), *reason, plan);
      return false;
    }
  }
  if (plan.sp && q_.seq % plan.tp != 0) {
    refuse("sp", "the sequence does not divide by tp", plan);
    return false;
  }
  return true;
}

void Space::walk_shardings(const ParallelPlan& legal) {
  const bool shared = legal.replicas() > 1 || (has_experts_ && legal.expert_replicas() > 1);
  for (const auto& offload : axes_.offloads) {
    for (const auto& sharding : axes_.shardings) {
      // Alone, zero=1 is the same plan as zero=0, and without offload so are all others.
      if (!shared && (sharding.zero == 1 || (sharding.zero > 1 && !offload.optimizer && !offload.weights))) continue;
      if (offload.weights && sharding.zero < 3 && !fixes(q_, "offload")) continue;
      auto plan = legal;
      plan.offload = offload;
      walk_sharding(plan, sharding);
    }
  }
}

void Space::walk_sharding(ParallelPlan plan, const Sharding& sharding) {
  plan.zero = sharding.zero;
  // What "node" means depends on tp, ep and etp.
  if (q_.fixed.has_zero) plan.shard = q_.fixed.plan.shard;
  plan.expert_shard = q_.fixed.plan.expert_shard;
  core::complete_groups(q_.fixed, q_.gpus_per_node, plan);
  if (sharding.in_node) {
    const auto in_node = std::max<std::int64_t>(1, std::min(plan.replicas(), q_.gpus_per_node / plan.tp));
    if (in_node <= 1 || in_node >= plan.replicas() || plan.replicas() % in_node != 0 || has_experts_) return;
    plan.shard = {in_node, in_node, in_node};
  }
  // Groups depend on degrees that the key of choices does not have.
  if (const auto reason = why_not_sharded(plan)) return refuse("zero", *reason, plan);
  const auto key = key_of(plan);
  if (!choices_.contains(key)) add_choices(plan);
  for (const auto& [reason, entry] : illegal_choices_[key]) {
    auto& sum = illegal_[reason];
    if (sum.count == 0) sum.example = entry.example;
    sum.count += entry.count;
  }
  if (choices_[key].empty()) return;
  units_.push_back({plan, static_cast<std::int64_t>(units_.size())});
  searched_ += plans_of(units_.back());
}

std::optional<std::string> Space::why_not_sharded(const ParallelPlan& plan) const {
  for (const auto* dimension : core::dimensions::all()) {
    if (dimension->name == "zero") return dimension->why_not(*q_.model, plan, q_.seq);
  }
  CORE_ASSERT(false);
}

// What schedules and layouts are legal for depends on no other degree.
Space::ChoiceKey Space::key_of(const ParallelPlan& plan) const {
  return {plan.pp, plan.micro_batches(), plan.zero >= 2, plan.zero >= 3, plan.offload.optimizer || plan.offload.weights};
}

void Space::add_choices(const ParallelPlan& unit) {
  const auto key = key_of(unit);
  auto& out = choices_[key];
  const auto layers = q_.model->layers();
  for (const auto& name : axes_.schedules) {
    const auto* schedule = core::find_schedule(name);
    const auto fixed = std::vector{schedule->stages_a_rank.value_or(1)};
    for (const auto vpp : schedule->stages_a_rank ? fixed : axes_.vpp) {
      ParallelPlan plan = unit;
      plan.schedule = name, plan.vpp = vpp;
      std::vector<std::pair<Layout, std::vector<std::int64_t>>> layouts;
      if (q_.fixed.has_layout) {
        layouts.push_back({q_.fixed.plan.layout, q_.fixed.plan.layers});
      } else {
        for (const auto layout : axes_.layouts) {
          if (layout == Layout::even && (layers % plan.stages() == 0 || axes_.layouts.size() == 1)) layouts.push_back({layout, {}});
          if (layout == Layout::slots && plan.stages() > 1) layouts.push_back({layout, {}});
        }
        if (layouts.empty()) layouts.push_back({Layout::even, {}});
      }
      for (const auto& [layout, given] : layouts) {
        plan.layout = layout, plan.layers = given;
        if (const auto reason = core::why_not(*q_.model, plan, q_.gpus, q_.seq)) {
          auto& entry = illegal_choices_[key][kind_of("schedule", *reason)];
          if (entry.count++ == 0) entry.example = core::to_text(plan);
          continue;
        }
        const auto sizes = core::layers_of_stages(plan, layers);
        Choice choice{name, vpp, layout, given, *std::max_element(sizes.begin(), sizes.end()), {}, 0, 0, false};
        choice.is_plain = schedule->placement == core::Placement::loop && !schedule->pairs && !schedule->splits_backward;
        for (std::int64_t r = 0; r < plan.pp; ++r) {
          auto fewest = layers;
          for (const auto s : core::model_stages_of_rank(schedule->placement, plan.pp, plan.stages(), r)) {
            fewest = std::min(fewest, sizes[static_cast<std::size_t>(s)]);
          }
          choice.fewest_layers.push_back(fewest);
        }
        for (std::int64_t s = 0; s + 1 < plan.pp; ++s) choice.lead_layers += sizes[static_cast<std::size_t>(s)];
        for (auto s = plan.pp - 1; s < plan.stages(); s += plan.pp) choice.last_layers += sizes[static_cast<std::size_t>(s)];
        out.push_back(std::move(choice));
      }
    }
  }
}

const std::vector<Choice>& Space::choices(const Unit& unit) const { return choices_.at(key_of(unit.plan)); }

ParallelPlan Space::plan_of(const Unit& unit, const Choice& choice, const RecomputeChoice& recompute) const {
  ParallelPlan plan = unit.plan;
  plan.schedule = choice.schedule, plan.vpp = choice.vpp;
  plan.layout = choice.layout, plan.layers = choice.layers;
  plan.recompute = recompute.kind, plan.recompute_modules = recompute.modules;
  plan.recompute_layers = fixes(q_, "recompute") ? q_.fixed.plan.recompute_layers : 0;
  return plan;
}

bool Space::partial(const ParallelPlan& plan) const {
  if (!axes_.partial_recompute || fixes(q_, "recompute") || plan.offload.activations) return false;
  return std::any_of(axes_.recompute.begin(), axes_.recompute.end(),
                     [](const RecomputeChoice& r) { return r.kind == Recompute::full; });
}

std::int64_t Space::plans_of(const ParallelPlan& plan, const Choice& choice) const {
  return static_cast<std::int64_t>(axes_.recompute.size()) + (partial(plan) ? choice.most_layers - 1 : 0);
}

std::int64_t Space::plans_of(const Unit& unit) const {
  std::int64_t sum = 0;
  for (const auto& choice : choices(unit)) sum += plans_of(unit.plan, choice);
  return sum;
}

}  // namespace planner

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/plan/plan.h"
#include "simulator/cost/cost.h"

namespace planner {

// How states are shared out: a level of ZeRO, over all replicas or over those of a node (HSDP).
struct Sharding {
  int zero = 0;
  bool in_node = false;
  bool operator==(const Sharding&) const = default;
};

// Recompute that a search tries: a kind, and for modules which.
struct RecomputeChoice {
  core::Recompute kind = core::Recompute::none;
  core::Modules modules = 0;
  bool operator==(const RecomputeChoice&) const = default;
};

// The combinations that a search tries: every axis with the values it may take. What the question fixes has one value.
struct Axes {
  std::vector<std::int64_t> tp, cp, pp, ep, etp, micro_batch;  // etp: 0 stands for "as tp"
  std::vector<core::ContextParallel> cp_kinds;
  std::vector<bool> sp;
  std::vector<std::string> schedules;
  std::vector<std::int64_t> vpp;       // of the schedules that leave it open
  std::vector<core::Layout> layouts;
  std::vector<Sharding> shardings;
  std::vector<RecomputeChoice> recompute;
  std::vector<core::Offload> offloads = {core::Offload{}};  // --fix may hold one that is not among them
  bool partial_recompute = true;       // full recompute on the first n layers of each stage, every n
};

struct Question {
  const core::ModelSpec* model = nullptr;
  std::int64_t gpus = 0, global_batch = 0, seq = 0;
  std::string recipe;
  core::PlanText fixed;  // settings given with --fix; its keys are held at its values
  std::int64_t gpus_per_node = 8;
  std::vector<core::Offload> allowed = {};  // offload that is tried besides none, where --fix says nothing
  core::Dispatch dispatch = core::Dispatch::nccl;  // of experts' tokens, where --fix says nothing
};

// Offload that --allow adds to a search: of the optimizer, with weights (zero=3) or without, of activations, of both.
std::vector<core::Offload> all_offloads();

// How experts' tokens travel best on a GPU: one-sided where its architecture has such kernels (data/curves), else by NCCL.
core::Dispatch best_dispatch(const simulator::Curves& curves);

// All values: tp, cp and pp divide the GPUs, tp up to two nodes and cp up to 1,024 tokens a rank, ep the experts, micro-batches the batch, vpp up to the layers of a stage.
// Schedules made to overlap all-to-alls are tried for models with experts.
Axes axes_of(const Question& question);

// Counts of combinations that cannot run, by reason, with an example.
struct Illegal {
  std::int64_t count = 0;
  std::string example;
};

// A legal combination of degrees, micro-batch and sharding: everything but schedule, layout and recompute.
struct Unit {
  core::ParallelPlan plan;
  std::int64_t number = 0;  // in the order of the walk
};

// A schedule and layout that a unit can run.
struct Choice {
  std::string schedule;
  std::int64_t vpp = 1;
  core::Layout layout = core::Layout::even;
  std::vector<std::int64_t> layers;  // layout given
  std::int64_t most_layers = 1;      // of a virtual stage
  std::vector<std::int64_t> fewest_layers;  // of the virtual stages of each pipeline rank
  // Of the first pp - 1 virtual stages, which a micro-batch goes through before it reaches the last rank; of that rank.
  std::int64_t lead_layers = 0, last_layers = 0;
  bool is_plain = true;  // whole backwards, one after another, stages in a loop
};

class Space {
 public:
  Space(const Question& question, const Axes& axes);

  const std::vector<Unit>& units() const { return units_; }
  const std::vector<Choice>& choices(const Unit& unit) const;
  core::ParallelPlan plan_of(const Unit& unit, const Choice& choice, const RecomputeChoice& recompute) const;
  // Plans of a choice that differ in recompute only, full recompute on 1 .. most_layers - 1 layers included.
  std::int64_t plans_of(const core::ParallelPlan& plan, const Choice& choice) const;
  std::int64_t plans_of(const Unit& unit) const;
  std::int64_t searched() const { return searched_; }
  const std::map<std::string, Illegal>& illegal() const { return illegal_; }
  const Axes& axes() const { return axes_; }
  // Partial full recompute is tried: not where activations are offloaded, when fewer recomputed layers may be slower.
  bool partial(const core::ParallelPlan& plan) const;

 private:
  using ChoiceKey = std::tuple<std::int64_t, std::int64_t, bool, bool, bool>;  // pp, micro-batches, what shards, states offloaded
  void walk();
  void walk_degrees(core::ParallelPlan plan);
  void walk_experts(core::ParallelPlan plan);
  void walk_micro_batches(core::ParallelPlan plan);
  void walk_pipelines(core::ParallelPlan plan);
  void walk_shardings(const core::ParallelPlan& plan);
  void walk_sharding(core::ParallelPlan plan, const Sharding& sharding);
  bool legal(const core::ParallelPlan& plan);
  std::optional<std::string> why_not_sharded(const core::ParallelPlan& plan) const;
  void refuse(const std::string& dimension, const std::string& reason, const core::ParallelPlan& plan, std::int64_t count = 1);
  ChoiceKey key_of(const core::ParallelPlan& plan) const;
  void add_choices(const core::ParallelPlan& plan);

  const Question& q_;
  Axes axes_;
  bool has_experts_ = false;
  std::vector<Unit> units_;
  std::map<ChoiceKey, std::vector<Choice>> choices_;
  std::map<ChoiceKey, std::map<std::string, Illegal>> illegal_choices_;
  std::map<std::string, Illegal> illegal_;
  std::int64_t searched_ = 0;
};

}  // namespace planner

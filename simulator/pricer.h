#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/graph/step_work.h"
#include "core/hardware/topology.h"
#include "core/plan/schedule.h"
#include "simulator/cost/prices.h"
#include "simulator/engine/cells.h"

namespace simulator {

// What a question fixes: model, machine, recipe, sequence. Shared by all plans that are tried.
struct Setting {
  core::ModelSpec model;
  core::Cluster cluster;
  core::Recipe recipe;
  core::Framework framework;          // for plans that do not shard gradients
  core::Framework sharded_framework;  // for plans that do (zero 2 and 3)
  core::AttentionKernel attention = core::AttentionKernel::flash2;
  std::int64_t seq = 0;

  const core::Framework& framework_of(const core::ParallelPlan& plan) const {
    return plan.zero >= 2 && plan.dp > 1 ? sharded_framework : framework;
  }
};

// The machine of a setting, built once: topology graph and curves.
class Bench {
 public:
  explicit Bench(const Setting& setting);
  const core::Topology& topology() const { return topology_; }
  const Curves& curves() const { return curves_; }
  Machine machine() const { return {topology_, curves_}; }

 private:
  core::Topology topology_;
  Curves curves_;
};

// One body under a tp, sp and micro-batch: time and memory of both directions.
struct BodyPrice {
  core::SimTime forward = 0, backward = 0;
  core::SimTime forward_kernels = 0, backward_kernels = 0;  // of it, kernels
  core::BodyMemory memory;
  double parameters = 0.0, gemm_parameters = 0.0, newton_schulz = 0.0;
};

struct PricedBodies {
  BodyPrice embedding, output;
  std::vector<std::array<BodyPrice, 3>> kinds;  // by kind of layer and Recompute
  double output_table = 0.0;
  double send_bytes = 0.0;
};

// Peak memory of a pipeline rank, in bytes.
struct RankMemory {
  std::int64_t resident = 0, short_lived = 0, lost = 0;
  std::int64_t total() const { return resident + short_lived + lost; }
};

// Prices plans at cell grain without building graphs: the same numbers as core::lower(..., Grain::cell) with prices_of,
// and the memory of its timeline. One for each thread: it keeps what plans share.
class Pricer {
 public:
  Pricer(const Setting& setting, const Bench& bench);

  const PricedBodies& bodies(const core::ParallelPlan& plan);

  // Peak memory of each pipeline rank under a table of the plan's schedule.
  void memory(const core::ParallelPlan& plan, const core::ScheduleTable& table, std::vector<RankMemory>& out);
  // The part of it that does not depend on the schedule.
  void resident_memory(const core::ParallelPlan& plan, std::vector<RankMemory>& out);

  void cell_times(const core::ParallelPlan& plan, CellTimes& out);

  // A lower bound of the makespan at cell grain: for each rank, the way of the first micro-batch to it, its own work,
  // the way of the last gradient from it, and the optimizer. Holds for any order of cells.
  core::SimTime lower_bound(const core::ParallelPlan& plan, const CellTimes& times) const;

 private:
  // A stage's bodies in model order, like ones counted.
  struct Run {
    const BodyPrice* body = nullptr;
    std::int64_t count = 0;
  };
  struct Stage {
    std::vector<Run> runs;
    void add(const BodyPrice* body) {
      if (!runs.empty() && runs.back().body == body) ++runs.back().count;
      else runs.push_back({body, 1});
    }
  };
  static void add_alike(const core::ParallelPlan& plan, const std::array<BodyPrice, 3>& kind, std::int64_t layers,
                        std::vector<Run>& runs);
  void expand(const Stage& stage);  // into expanded_
  void lay_out(const core::ParallelPlan& plan, const PricedBodies& bodies);
  BodyPrice price(const core::Body& body, const core::Framework& framework, std::int64_t tp);
  core::SimTime data_time(core::OpKind kind, const core::ParallelPlan& plan, double bytes);
  core::SimTime gather_time(const core::ParallelPlan& plan, double parameters);
  core::SimTime reduce_time(const core::ParallelPlan& plan, double parameters);
  core::SimTime send_time(const core::ParallelPlan& plan, std::int64_t from, std::int64_t to, double bytes);
  std::vector<core::BodyRange> buckets(const core::ParallelPlan& plan) const;  // of expanded_
  void edge_pieces(const core::ParallelPlan& plan, std::size_t s, CellTimes& out);
  void sharded_pieces(const core::ParallelPlan& plan, std::size_t s, CellTimes& out);

  const Setting& setting_;
  const Bench& bench_;
  std::map<std::tuple<std::int64_t, bool, std::int64_t, bool, bool, core::Loss, core::CudaGraphs>, PricedBodies> bodies_;
  Slowdown slowdown_;
  std::map<std::tuple<double, core::OpKind, std::int64_t, std::int64_t>, core::SimTime> data_times_;
  std::map<std::tuple<std::int64_t, std::int64_t, double>, core::SimTime> send_times_;
  std::vector<Stage> stages_;
  std::vector<const BodyPrice*> expanded_;
  std::vector<core::CellMemory> cells_;
  BodyPrice output_;  // with the copy of a tied table where there is one
};

// A table long enough to show the schedule's steady state, and shorter than the plan's where it has more micro-batches. What
// is left out is a multiple of pp micro-batches, so of each round and period.
core::ScheduleTable short_table(const core::Schedule& schedule, std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches);

}  // namespace simulator

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/graph/graph_writer.h"
#include "core/graph/step_work.h"
#include "core/hardware/topology.h"
#include "core/plan/schedule.h"
#include "simulator/cost/prices.h"
#include "simulator/engine/cells.h"
#include "simulator/run_class.h"

namespace simulator {

// A measured run of the user's own system, and what was predicted for it before it calibrated anything.
struct CalibratingRun {
  std::string name, gpu;
  RunClass runs;
  double measured_s = 0.0, predicted_s = 0.0;
  bool operator==(const CalibratingRun&) const = default;
};

// What such runs tell: factors on durations of kernels, of communication and of what the host takes.
struct SystemCalibration {
  double kernels = 1.0, communication = 1.0, host = 1.0;
  std::vector<CalibratingRun> runs;
  bool operator==(const SystemCalibration&) const = default;
};

// What a question fixes: model, machine, recipe, sequence. Shared by all plans that are tried.
struct Setting {
  core::ModelSpec model;
  core::Cluster cluster;
  core::Recipe recipe;
  core::Framework framework;          // for plans that do not shard gradients
  core::Framework sharded_framework;  // for plans that do (zero 2 and 3)
  core::AttentionKernel attention = core::AttentionKernel::flash2;
  std::int64_t seq = 0;
  std::int64_t gpus = 1;  // that wait for each other
  double overload = 1.0;  // tokens on the fullest expert rank over the mean
  double capacity = 0.0;  // capacity factor of experts; 0 = dropless
  double data_stall_s = 0.0;  // a step waits for its data
  double checkpoint_s = 0.0;  // writing a checkpoint stops training, averaged over the steps between two
  std::optional<SystemCalibration> calibrated;  // by measured runs of the user's own; calibrate() sets it

  // GPUs of a node, or of the NVLink domain where it is larger.
  std::int64_t gpus_together() const { return std::max(cluster.node.gpus, cluster.node.nvlink_domain); }
  const core::Framework& framework_of(const core::ParallelPlan& plan) const {
    const bool shares = plan.replicas() > 1 || plan.offload.optimizer || plan.offload.weights;
    return plan.zero >= 2 && shares ? sharded_framework : framework;
  }
  core::ModelBodies bodies_of(const core::ParallelPlan& plan) const {
    auto context = core::body_context(plan, recipe, framework_of(plan), model, seq, attention);
    context.overload = overload;
    context.capacity = capacity;
    return core::bodies_of(model, context);
  }
};

// Applies a calibration to a setting that has none: a Bench made of it has its factors, as its frameworks have.
void calibrate(Setting& setting, const SystemCalibration& calibration);

// The machine of a setting, built once: topology graph and curves.
class Bench {
 public:
  explicit Bench(const Setting& setting);
  // The same with curves that a calibration changed.
  Bench(const Setting& setting, Curves curves);
  const core::Topology& topology() const { return topology_; }
  const Curves& curves() const { return curves_; }
  Machine machine() const { return {topology_, curves_, slowest_, corrections_}; }

 private:
  core::Topology topology_;
  Curves curves_;
  double slowest_;
  Corrections corrections_;
};

// Time of a part of a body, the same when data-parallel collectives slow all its kernels; of the kernels in it, and of the
// all-to-alls of experts in it.
struct PartTime {
  core::SimTime time = 0, slowed = 0, kernels = 0, experts = 0;
  PartTime& operator+=(const PartTime& o) {
    time += o.time, slowed += o.slowed, kernels += o.kernels, experts += o.experts;
    return *this;
  }
  PartTime operator*(std::int64_t n) const { return {n * time, n * slowed, n * kernels, n * experts}; }
};
using PartTimes = std::array<PartTime, 4>;  // by core::Part

// One body under a plan's degrees and micro-batch: time of each part, and memory.
struct BodyPrice {
  PartTimes parts;
  core::BodyMemory memory;
  double gather_buffer = 0.0, output_operands = 0.0;
  core::StateElements elements, gemm;
  core::StateElements matrix_squares, newton_schulz_elements;
  double newton_schulz = 0.0, layer_weights = 0.0, output_weight = 0.0;
  std::uint32_t chain = 0;  // of PairChains
};
inline constexpr std::size_t recompute_modes = 4;
using BodyModes = std::array<BodyPrice, recompute_modes>;  // by Recompute

// Operations of bodies with their durations, for the time of overlapped pairs; by BodyPrice::chain.
struct PricedChain {
  std::vector<core::ChainOp> ops;
  std::vector<core::SimTime> durations, slowed;  // alone on the GPU, and with kernels slowed
};
struct PairChains {
  std::vector<std::array<PricedChain, 4>> bodies;  // by core::Part
};

struct PricedBodies {
  BodyPrice embedding, output;
  std::vector<BodyModes> kinds, high_kinds, mtp;  // by kind of layer; by module
  std::vector<BodyModes> kinds_again, high_kinds_again;  // of layers that run again with the same weights
  std::array<bool, recompute_modes> has_mode{};   // of all of them, the modes that a plan has asked for
  double output_table = 0.0;
  double send_bytes = 0.0;
  std::unique_ptr<PairChains> chains;  // made when a schedule with pairs asks
};

// Peak memory of a pipeline rank, in bytes.
struct RankMemory {
  std::int64_t resident = 0, short_lived = 0, lost = 0;
  double host = 0.0;  // of what is offloaded, on the rank's host, without buffers
  std::int64_t total() const { return resident + short_lived + lost; }
};

// Prices plans at cell grain without building graphs: the same numbers as core::lower(..., Grain::cell) with prices_of,
// and the memory of its timeline. One for each thread: it keeps what plans share.
class Pricer {
 public:
  Pricer(const Setting& setting, const Bench& bench);

  const PricedBodies& bodies(const core::ParallelPlan& plan);
  // Forgets bodies when there are many. References to them end.
  void forget_bodies();

  // Peak memory of each pipeline rank under a table of the plan's schedule.
  void memory(const core::ParallelPlan& plan, const core::ScheduleTable& table, std::vector<RankMemory>& out);
  // The part of it that does not depend on the schedule; then, right after it for the same plan, the part that does.
  void resident_memory(const core::ParallelPlan& plan, std::vector<RankMemory>& out);
  void short_lived_memory(const core::ParallelPlan& plan, const core::ScheduleTable& table, std::vector<RankMemory>& out);

  // `pairs`: no leaves out what overlapped pairs take, which lower_bound does not read; least gives each a lower bound; alone
  // leaves out how collectives beside them slow them, which bounds do not read.
  enum class Pairs : std::uint8_t { yes, no, least, alone };
  void cell_times(const core::ParallelPlan& plan, CellTimes& out, Pairs pairs = Pairs::yes);

  // Lower bounds that hold for every schedule, layout and sharding traffic of a plan's degrees, micro-batch and recompute: the
  // work of all micro-batches shared out evenly over the pipeline ranks; `paired` has the kernels and
  // the all-to-alls of experts overlap as far as they can, and hides the rest.
  struct WorkBound {
    core::SimTime plain = 0, paired = 0;
    // Of one micro-batch, forward and backward: the layer that takes least, the output layer.
    core::SimTime layer = 0, output = 0;
    std::int64_t saved = 0;  // bytes that the layer that leaves least leaves for a micro-batch
  };
  WorkBound work_bound(const core::ParallelPlan& plan);
  // The least that the fullest rank holds all through the step, whatever the layout, in bytes. Prices nothing.
  double resident_at_least(const core::ParallelPlan& plan);

  // A lower bound of the makespan at cell grain: for each rank, the way of the first micro-batch to it, its own work,
  // the way of the last gradient from it, and the optimizer. Holds for any order of cells.
  core::SimTime lower_bound(const core::ParallelPlan& plan, const CellTimes& times) const;
  // A lower bound from the plan's layout alone, no higher than that one: what each rank computes, without any traffic.
  core::SimTime layout_bound(const core::ParallelPlan& plan);

 private:
  // A stage's bodies in model order, like ones counted.
  struct Run {
    const BodyPrice* body = nullptr;
    std::int64_t count = 0;
    bool operator==(const Run&) const = default;
  };
  struct Stage {
    std::vector<Run> runs;
    void add(const BodyPrice* body) {
      if (!runs.empty() && runs.back().body == body) ++runs.back().count;
      else runs.push_back({body, 1});
    }
  };
  // A collective that keeps states together, as memoised.
  struct StateKey {
    double bytes;
    core::OpKind kind;
    core::GroupShape group;
    std::int64_t levels;
    auto operator<=>(const StateKey&) const = default;
  };
  // All that the bodies of a plan depend on.
  struct BodiesKey {
    std::int64_t tp, cp, ep, etp, micro_batch;
    bool sp, balanced, sharded, gathered, copied, overlap_tensor, overlap_experts, offload_activations;
    core::ContextParallel cp_kind;
    core::Modules modules;
    core::Loss loss;
    core::Dispatch dispatch;
    core::CudaGraphs graphs;
    auto operator<=>(const BodiesKey&) const = default;
  };
  // What an operation's time depends on: its shape, and of a collective the group. Looked up without a copy of the shape.
  struct OpView {
    const core::OpSpec* spec = nullptr;
    std::int64_t stride = 0, size = 0;  // of the group; 0 for kernels
  };
  struct OpKey {
    core::OpSpec spec;
    std::int64_t stride = 0, size = 0;
    OpView view() const { return {&spec, stride, size}; }
  };
  struct OpHash {
    using is_transparent = void;
    std::size_t operator()(const OpView& op) const;
    std::size_t operator()(const OpKey& op) const { return (*this)(op.view()); }
  };
  struct OpEqual {
    using is_transparent = void;
    static bool same(const OpView& a, const OpView& b) {
      return a.stride == b.stride && a.size == b.size && *a.spec == *b.spec;
    }
    bool operator()(const OpKey& a, const OpKey& b) const { return same(a.view(), b.view()); }
    bool operator()(const OpView& a, const OpKey& b) const { return same(a, b.view()); }
    bool operator()(const OpKey& a, const OpView& b) const { return same(a.view(), b); }
  };

  PricedBodies& priced(const core::ParallelPlan& plan);
  std::vector<const core::BodyMemory*> memory_of_bodies(std::size_t stage) const;
  static void add_alike(const core::ParallelPlan& plan, const BodyModes& kind, std::int64_t layers, std::vector<Run>& runs);
  void expand(const Stage& stage);  // into expanded_
  void lay_out(const core::ParallelPlan& plan, const PricedBodies& bodies);
  void find_alike();
  void price_mode(const core::ParallelPlan& plan, core::Recompute mode, const BodiesKey& key, PricedBodies& out);
  const core::ModelBodies& bodies_to_price(const core::ParallelPlan& plan, BodiesKey key);
  BodyPrice price(const core::Body& body, const core::Framework& framework, const core::ParallelPlan& plan,
                  const PartTime* forward);
  PricedChain price_chain(const core::Body& body, core::Part part, const core::ParallelPlan& plan);
  PartTimes part_times(const core::Body& body, const core::Framework& framework, const core::ParallelPlan& plan,
                        const PartTime* forward);
  core::SimTime offload_time(const core::Body& body, core::Part part);
  void append(const core::BodyOp& op, const std::vector<core::CommGroup>& groups, PricedChain& out);
  core::SimTime op_time(const core::OpSpec& spec, const core::CommGroup* group);
  void price_pairs(const core::ParallelPlan& plan, PricedBodies& bodies, bool alone, CellTimes& out);
  void bound_pairs(const core::ParallelPlan& plan, CellTimes& out) const;
  CommTimes times_of(const core::StateOps& ops);
  core::SimTime state_time(const core::StateOp& op);
  core::SimTime copies_time(const core::StateOps& ops, std::int64_t first) const;
  core::SimTime send_time(const core::ParallelPlan& plan, std::int64_t from, std::int64_t to, double bytes);
  std::vector<core::BodyRange> buckets(const core::ParallelPlan& plan) const;  // of expanded_
  // Of the stages that are like one of stages_, into that place of `out`.
  void edge_pieces(const core::ParallelPlan& plan, const core::StateTraffic& traffic, std::size_t like, CellTimes& out);
  void sharded_pieces(const core::StateTraffic& traffic, bool reduces_last, std::size_t like, CellTimes& out);
  Piece piece_of(const PartTime& time) const;
  const PartTimes& stage_times(std::size_t stage) const { return like_times_[like_[stage]]; }  // of those that are laid out

  const Setting& setting_;
  const Bench& bench_;
  bool casts_each_step_;  // weights: then bodies depend on whether they are gathered
  std::map<BodiesKey, PricedBodies> bodies_;
  std::map<BodiesKey, core::ModelBodies> recent_;  // a few, without modules: plans that differ in recompute share them
  std::vector<PricedBodies*> with_chains_;  // of bodies_
  Slowdown slowdown_;
  std::unordered_map<OpKey, core::SimTime, OpHash, OpEqual> op_times_;
  std::map<StateKey, core::SimTime> state_times_;
  std::map<std::tuple<std::int64_t, std::int64_t, double>, core::SimTime> send_times_;
  PricedChain chain_;                      // of the body that is priced
  std::vector<core::ChainOp> chain_part_;  // of chain_
  // What the stages that are laid out depend on.
  struct Laid {
    const PricedBodies* bodies = nullptr;
    std::int64_t pp = 0, vpp = 0;
    core::Layout layout = core::Layout::even;
    std::vector<std::int64_t> layers;
    core::Recompute recompute = core::Recompute::none;
    std::int64_t recompute_layers = 0;
    bool tied = false;
    bool operator==(const Laid&) const = default;
  };
  Laid laid_;
  std::vector<Stage> stages_;
  // Stages of the same bodies are alike: of each stage which, then of each of those the first stage and the times of its parts.
  std::vector<std::uint32_t> like_;
  std::vector<std::size_t> first_like_;
  std::vector<PartTimes> like_times_;
  std::vector<const BodyPrice*> expanded_;
  std::vector<core::CellMemory> cells_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, bool>, core::RankParameters> whole_;  // of all stages
  BodyPrice output_;  // with the copy of a tied table where there is one
};

// The round by which tables of a schedule may be shortened and run_periodic adds it back: core::steady_round, but 0 (run whole
// tables) where the steady state is not one F and one B a micro-batch and stage, each alone, on stages in a loop.
std::int64_t round_of_short_tables(const core::Schedule& schedule, std::int64_t pp, std::int64_t micro_batches);

// A table long enough to show the schedule's steady state, and shorter than the plan's where it has more micro-batches. What
// is left out is a multiple of pp micro-batches, so of each round and period.
core::ScheduleTable short_table(const core::Schedule& schedule, std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches);

}  // namespace simulator

#include "simulator/pricer.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/error.h"
#include "simulator/pricer/parts.h"

namespace simulator {

using core::Part;

void Pricer::resident_memory(const core::ParallelPlan& plan, std::vector<RankMemory>& out) {
  lay_out(plan, bodies(plan));
  const auto& framework = setting_.framework_of(plan);
  const auto placement = schedule_of(plan).placement;
  out.resize(static_cast<std::size_t>(plan.pp));
  for (std::size_t r = 0; r < out.size(); ++r) {
    core::RankParameters parameters;
    for (const auto s : core::model_stages_of_rank(placement, plan.pp, plan.stages(), static_cast<std::int64_t>(r))) {
      const double before = parameters.all.all();
      for (const auto& run : stages_[static_cast<std::size_t>(s)].runs) {
        add(parameters, *run.body, run.count);
      }
      parameters.largest_stage = std::max(parameters.largest_stage, parameters.all.all() - before);
    }
    out[r] = {};
    for (const auto bytes : core::resident_memory(parameters, plan, setting_.recipe, framework)) {
      out[r].resident += bytes;
    }
    out[r].host = core::host_memory(parameters, plan, setting_.recipe);
  }
}

namespace {

// What a cell of a stage adds to a rank's short-lived memory: most, while it runs, and for good, when it ends.
struct CellStep {
  std::int64_t most = 0, left = 0;
};

CellStep step_of(const core::CellMemory& cell, Part part) {
  switch (part) {
    case Part::forward: return {cell.forward_peak, cell.saved()};
    case Part::backward: return {cell.backward_peak - cell.saved(), -cell.saved()};
    case Part::input_gradient: return {std::max(cell.held, cell.input_peak - cell.saved()), cell.left_for_weights() - cell.saved()};
    case Part::weight_gradient: return {0, -cell.left_for_weights()};
  }
  CORE_ASSERT(false);
}

// Steps of all parts of all stages of a table: the walk through a rank's actions looks up two numbers for each.
class CellSteps {
 public:
  template <class CellOf>
  CellSteps(std::int64_t stages, const CellOf& cell_of) {
    steps_.reserve(static_cast<std::size_t>(stages) * std::size(all_parts));
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      for (std::size_t part = 0; part < std::size(all_parts); ++part) steps_.push_back(step_of(cell_of(stage), static_cast<Part>(part)));
    }
  }
  const CellStep& operator()(const core::Action& a) const {
    return steps_[std::size_t{a.stage} * std::size(all_parts) + static_cast<std::size_t>(a.kind)];
  }

 private:
  std::vector<CellStep> steps_;
};

// Follows the short-lived memory of a rank through its actions, as the tensors of a graph at cell grain.
struct MemoryWalk {
  std::int64_t now = 0, peak = 0;

  void run(const CellStep& step) {
    peak = std::max(peak, now + step.most);
    now += step.left;
  }
  // Two that overlap; `most`: what they need together, where it is less than both from start to end.
  void run_pair(const CellStep& a, const CellStep& b, std::optional<std::int64_t> most) {
    peak = std::max(peak, now + most.value_or(a.most + b.most));
    now += a.left + b.left;
  }
};

// Which pairs have data-parallel communication between their bodies, and so run as two, one after the other
// (core/graph/lower.cpp).
class PairsInPieces {
 public:
  PairsInPieces(const core::ParallelPlan& plan, const core::Recipe& recipe, const core::ScheduleTable& table) {
    if (!schedule_of(plan).pairs) return;
    const core::StateTraffic traffic(plan, recipe);
    all_ = traffic.gathers_units() || traffic.reduces_each();
    first_forward_.resize(static_cast<std::size_t>(table.stages()));
    last_backward_.resize(first_forward_.size());
    for (const auto& actions : table.ranks) {
      for (const auto& a : actions) {
        auto& first = first_forward_[a.stage];
        if (a.kind == Part::forward && traffic.gathers_ahead() && !first) first = a.micro_batch;
        if (a.kind == Part::backward && traffic.reduces() && plan.overlap_gradients) last_backward_[a.stage] = a.micro_batch;
      }
    }
  }
  bool operator()(const core::Action& forward, const core::Action& backward) const {
    return all_ || first_forward_[forward.stage] == forward.micro_batch ||
           last_backward_[backward.stage] == backward.micro_batch;
  }

 private:
  bool all_ = false;
  std::vector<std::optional<std::uint32_t>> first_forward_, last_backward_;  // micro-batch, by stage
};

}  // namespace

// Bodies of a stage one by one, in model order.
std::vector<const core::BodyMemory*> Pricer::memory_of_bodies(std::size_t stage) const {
  std::vector<const core::BodyMemory*> bodies;
  for (const auto& run : stages_[stage].runs) {
    bodies.insert(bodies.end(), static_cast<std::size_t>(run.count), &run.body->memory);
  }
  return bodies;
}

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
  const CellSteps step_of_action(table.stages(), [&](std::int64_t stage) -> const core::CellMemory& {
    return cells_[static_cast<std::size_t>(table.model_stage(stage))];
  });
  if (plan.offload.activations) {
    std::vector<double> kept;
    for (const auto& cell : cells_) kept.push_back(static_cast<double>(cell.host));
    const auto peaks = core::host_activations(table, kept);
    for (std::size_t r = 0; r < out.size(); ++r) out[r].host += peaks[r];
  }
  const PairsInPieces in_pieces(plan, setting_.recipe, table);
  constexpr std::int64_t unknown = -1;
  const auto kinds = like_times_.size();
  std::vector<std::int64_t> pairs(kinds * kinds, unknown);  // by what stages the forward's and the backward's are like
  const auto pair_peak = [&](const core::Action& a, const core::Action& b) -> std::optional<std::int64_t> {
    const auto& forward = a.kind == Part::forward ? a : b;
    const auto& backward = a.kind == Part::forward ? b : a;
    if (backward.kind != Part::backward || in_pieces(forward, backward)) return std::nullopt;
    const auto stage = [&](const core::Action& action) { return static_cast<std::size_t>(table.model_stage(action.stage)); };
    const auto first = stage(forward), second = stage(backward);
    auto& peak = pairs[like_[first] * kinds + like_[second]];
    if (peak == unknown) peak = core::pair_peak(memory_of_bodies(first), memory_of_bodies(second));
    return peak;
  };
  for (std::size_t r = 0; r < out.size(); ++r) {
    MemoryWalk walk;
    const auto& actions = table.ranks[r];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const auto& a = actions[i];
      if (a.with_next && i + 1 < actions.size()) {
        const auto& b = actions[++i];
        walk.run_pair(step_of_action(a), step_of_action(b), pair_peak(a, b));
      } else {
        walk.run(step_of_action(a));
      }
    }
    out[r].short_lived = walk.peak;
    out[r].lost = core::fragmentation(walk.peak, framework);
  }
}

}  // namespace simulator

#include "simulator/pricer.h"

#include <algorithm>

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
  if (plan.offload.activations) {
    std::vector<double> kept;
    for (const auto& cell : cells_) kept.push_back(static_cast<double>(cell.host));
    const auto peaks = core::host_activations(table, kept);
    for (std::size_t r = 0; r < out.size(); ++r) out[r].host += peaks[r];
  }
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

}  // namespace simulator

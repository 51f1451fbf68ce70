#include "core/plan/ideal_run.h"

#include <algorithm>

#include "core/error.h"

namespace core {

namespace {

class Runner {
 public:
  Runner(const ScheduleTable& table, std::span<const IdealStage> stages)
      : t_(table),
        stages_(stages),
        forward_end_(cells()),
        back_end_(cells()),
        next_(table.ranks.size(), 0),
        held_(table.ranks.size(), 0) {
    run_.ranks.resize(table.ranks.size());
  }

  IdealRun run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < t_.ranks.size(); ++r) {
        while (step(r)) moved = true;
      }
    }
    for (std::size_t r = 0; r < t_.ranks.size(); ++r) {
      CORE_ASSERT(next_[r] == t_.ranks[r].size());
      run_.makespan = std::max(run_.makespan, run_.ranks[r].end);
    }
    return std::move(run_);
  }

 private:
  using Time = std::int64_t;
  using Ends = std::vector<std::optional<Time>>;

  std::size_t cells() const { return static_cast<std::size_t>(t_.stages() * t_.micro_batches); }
  std::size_t index(std::int64_t stage, std::int64_t micro_batch) const {
    return static_cast<std::size_t>(stage * t_.micro_batches + micro_batch);
  }
  const IdealStage& stage(const Action& a) const { return stages_.size() == 1 ? stages_[0] : stages_[a.stage]; }

  // When what an action needs from other actions is there; nothing if they have not run.
  std::optional<Time> inputs(const Action& a) const {
    const auto i = index(a.stage, a.micro_batch);
    switch (a.kind) {
      case Action::Kind::forward:
        return t_.is_first(a.stage) ? Time{0} : forward_end_[index(a.stage - 1, a.micro_batch)];
      case Action::Kind::weight_gradient: return back_end_[i];
      case Action::Kind::backward:
      case Action::Kind::input_gradient: {
        const auto later = t_.is_last(a.stage) ? forward_end_[i] : back_end_[index(a.stage + 1, a.micro_batch)];
        if (!forward_end_[i] || !later) return std::nullopt;
        return std::max(*forward_end_[i], *later);
      }
    }
    CORE_ASSERT(false);
  }

  Time duration(const Action& a) const {
    switch (a.kind) {
      case Action::Kind::forward: return stage(a).forward;
      case Action::Kind::backward: return stage(a).backward;
      case Action::Kind::input_gradient: return stage(a).input_gradient;
      case Action::Kind::weight_gradient: return stage(a).weight_gradient;
    }
    CORE_ASSERT(false);
  }
  Time duration(const Action& a, const Action& b) const {
    const auto& back = a.kind == Action::Kind::forward ? b : a;
    const auto given = back.kind == Action::Kind::backward ? stage(back).with_backward : stage(back).with_input_gradient;
    return given.value_or(std::max(duration(a), duration(b)));
  }

  // Runs the next action or pair of a rank, if its inputs are there.
  bool step(std::size_t r) {
    const auto& program = t_.ranks[r];
    auto& rank = run_.ranks[r];
    if (next_[r] == program.size()) return false;
    const auto& a = program[next_[r]];
    const Action* b = a.with_next ? &program[next_[r] + 1] : nullptr;
    const auto ready = inputs(a), ready_too = b != nullptr ? inputs(*b) : ready;
    if (!ready || !ready_too) return false;
    const auto start = std::max({rank.end, *ready, *ready_too});
    const auto time = b != nullptr ? duration(a, *b) : duration(a);
    if (next_[r] == 0) rank.start = start;
    rank.end = start + time;
    rank.busy += time;
    // What a forward adds is there while the pair runs, what a backward frees is there until it ends.
    hold(r, a, b);
    finish(r, a);
    if (b != nullptr) finish(r, *b);
    next_[r] += b != nullptr ? 2 : 1;
    return true;
  }

  void hold(std::size_t r, const Action& a, const Action* b) {
    auto& rank = run_.ranks[r];
    const auto add = [&](const Action& x) { held_[r] += x.kind == Action::Kind::forward ? stage(x).activation : 0; };
    add(a);
    if (b != nullptr) add(*b);
    rank.memory.insert(rank.memory.end(), b != nullptr ? 2 : 1, held_[r]);
    rank.peak = std::max(rank.peak, held_[r]);
  }

  void finish(std::size_t r, const Action& a) {
    const auto end = run_.ranks[r].end;
    run_.ranks[r].ends.push_back(end);
    const auto i = index(a.stage, a.micro_batch);
    switch (a.kind) {
      case Action::Kind::forward: forward_end_[i] = end; break;
      case Action::Kind::backward: back_end_[i] = end, held_[r] -= stage(a).activation; break;
      case Action::Kind::input_gradient:
        back_end_[i] = end, held_[r] -= stage(a).activation - stage(a).kept_for_weight;
        break;
      case Action::Kind::weight_gradient: held_[r] -= stage(a).kept_for_weight; break;
    }
  }

  const ScheduleTable& t_;
  std::span<const IdealStage> stages_;
  Ends forward_end_, back_end_;  // by stage and micro-batch; back: of B or I
  std::vector<std::size_t> next_;
  std::vector<std::int64_t> held_;
  IdealRun run_;
};

}  // namespace

std::int64_t IdealRun::least_bubble() const {
  std::int64_t least = makespan;
  for (const auto& rank : ranks) least = std::min(least, makespan - rank.busy);
  return least;
}

IdealRun ideal_run(const ScheduleTable& table, std::span<const IdealStage> stages) {
  CORE_ASSERT(stages.size() == 1 || static_cast<std::int64_t>(stages.size()) == table.stages());
  return Runner(table, stages).run();
}

IdealRun ideal_run(const ScheduleTable& table, const IdealStage& each) { return ideal_run(table, std::span(&each, 1)); }

}  // namespace core

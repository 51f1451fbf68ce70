#include "core/graph/lower.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/error.h"

namespace core {

namespace {

// Walks a schedule table in an order in which it can run, and writes the operations of each action.
class Lowering : private GraphWriter {
 public:
  Lowering(const StepWork& work, const ScheduleTable& table, Grain grain, Fold fold)
      : GraphWriter(work, fold), table_(table), grain_(grain) {}

  StepGraph run() {
    prepare();
    walk();
    for (std::int64_t p = 0; p < work_.plan.pp; ++p) finish_gradients(p);
    finish_step();
    return std::move(graph_);
  }

 private:
  void prepare() {
    const auto& plan = work_.plan;
    const auto stride = plan.tp * plan.dp;
    for (std::int64_t p = 0; p < plan.pp && plan.pp > 1; ++p) {
      const auto next = (p + 1) % plan.pp;
      forward_edge_.push_back(
          add_group({"pp" + std::to_string(p) + ">" + std::to_string(next), p * stride, (next - p) * stride, 2}));
      backward_edge_.push_back(
          add_group({"pp" + std::to_string(next) + ">" + std::to_string(p), next * stride, (p - next) * stride, 2}));
    }
    if (work_.tied_copy) tied_group_ = add_group({"tied", 0, (plan.pp - 1) * stride, 2});
    plan_pieces();
    finished_.assign(static_cast<std::size_t>(table_.micro_batches), false);
    CORE_ASSERT(work_.stages.size() < 4096 && table_.micro_batches < (std::int64_t{1} << 24));
    arrived_.resize(work_.stages.size() * 2);
  }
  std::size_t cell_index(std::size_t stage, std::uint32_t micro_batch) const {
    return stage * static_cast<std::size_t>(table_.micro_batches) + micro_batch;
  }

  // Which actions of a rank are written in pieces: all at op grain; at mixed grain, where data-parallel communication may
  // run beside them. That is every action where each micro-batch communicates; else those up to the last first forward of
  // the rank's stages, whose parameters are gathered ahead, and those from the first last backward on. The saved tensors of
  // a micro-batch are one where both of its actions run as one operation each.
  void plan_pieces() {
    const auto& plan = work_.plan;
    const bool edges_only = plan.dp == 1 || plan.zero < 2;
    whole_.assign(work_.stages.size() * static_cast<std::size_t>(table_.micro_batches), true);
    first_forward_.assign(work_.stages.size(), 0);
    last_backward_.assign(work_.stages.size(), 0);
    for (const auto& actions : table_.ranks) {
      auto& [head, tail] = unrolled_.emplace_back(0, actions.size());
      std::vector<bool> seen(work_.stages.size(), false);
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const auto& a = actions[i];
        if (a.kind != Action::Kind::forward || seen[a.stage]) continue;
        seen[a.stage] = true;
        first_forward_[a.stage] = a.micro_batch;
        if (gathers_ahead()) head = i + 1;
      }
      seen.assign(seen.size(), false);
      for (auto i = actions.size(); i-- > 0;) {
        const auto& a = actions[i];
        if (a.kind == Action::Kind::forward || seen[a.stage]) continue;
        seen[a.stage] = true;
        last_backward_[a.stage] = a.micro_batch;
        if (plan.dp > 1 && plan.overlap_gradients) tail = i;
      }
      if (grain_ == Grain::cell) head = 0, tail = actions.size();
      if (grain_ == Grain::op || (grain_ == Grain::mixed && !edges_only)) head = actions.size();
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const auto& a = actions[i];
        const auto edge = a.kind == Action::Kind::forward ? first_forward_[a.stage] : last_backward_[a.stage];
        if (i < head || i >= tail || !edges_only || a.micro_batch == edge) whole_[cell_index(a.stage, a.micro_batch)] = false;
      }
    }
  }

  void walk() {
    std::vector<std::size_t> next(table_.ranks.size(), 0);
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t p = 0; p < table_.ranks.size(); ++p) {
        while (next[p] < table_.ranks[p].size() && ready(table_.ranks[p][next[p]])) {
          run_action(static_cast<std::int64_t>(p), next[p]++);
          moved = true;
        }
      }
    }
    for (std::size_t p = 0; p < table_.ranks.size(); ++p) CORE_ASSERT(next[p] == table_.ranks[p].size());
  }
  std::map<std::uint32_t, std::vector<OpId>>& inbox(std::size_t stage, bool backward) {
    return arrived_[stage * 2 + (backward ? 1 : 0)];
  }
  bool ready(const Action& a) {
    const bool backward = a.kind != Action::Kind::forward;
    if (!backward) return a.stage == 0 || inbox(a.stage, false).contains(a.micro_batch);
    if (static_cast<std::size_t>(a.stage) + 1 == work_.stages.size()) {
      return static_cast<bool>(finished_[a.micro_batch]);
    }
    return inbox(a.stage, true).contains(a.micro_batch);
  }

  void run_action(std::int64_t p, std::size_t index) {
    const auto& a = table_.ranks[static_cast<std::size_t>(p)][index];
    const bool backward = a.kind != Action::Kind::forward;
    const std::size_t stage = a.stage;
    const auto [head, tail] = unrolled_[static_cast<std::size_t>(p)];
    unroll_ = index < head || index >= tail;
    receive(p, stage, backward, a.micro_batch);
    if (work_.plan.zero == 3 && work_.plan.dp > 1) run_sharded(p, index);
    else if (backward) run_backward(p, stage, a.micro_batch);
    else run_forward(p, stage, a.micro_batch);
    send(p, stage, backward, a.micro_batch);
  }
  void receive(std::int64_t p, std::size_t stage, bool backward, std::uint32_t micro_batch) {
    auto& box = inbox(stage, backward);
    const auto found = box.find(micro_batch);
    if (found == box.end()) return;
    std::size_t i = 0;
    each_rank_of(p, [&](std::int32_t r) { lane(r).joins.push_back(found->second[i++]); });
    box.erase(found);
  }
  void send(std::int64_t p, std::size_t stage, bool backward, std::uint32_t micro_batch) {
    const auto last = work_.stages.size() - 1;
    if (!backward && stage == last) finished_[micro_batch] = true;
    if (backward ? stage == 0 : stage == last) return;
    const auto to = backward ? stage - 1 : stage + 1;
    auto& box = inbox(to, backward)[micro_batch];
    const auto edge = static_cast<std::size_t>(backward ? to : stage) % static_cast<std::size_t>(work_.plan.pp);
    const auto group = backward ? backward_edge_[edge] : forward_edge_[edge];
    auto& spec = send_specs_[group];
    if (!spec) spec = add_spec(collective(OpKind::send_receive, backward ? "send_gradient" : "send_activation",
                                          work_.send_bytes, group));
    each_rank_of(p, [&](std::int32_t r) {
      const auto id = begin_op(*spec, {static_cast<std::uint16_t>(stage), 0,
                                       backward ? Phase::send_backward : Phase::send_forward, 0, micro_batch});
      depend_on_lane(lane(r));
      occupy(r, backward ? Stream::send_backward : Stream::send_forward);
      end_op();
      box.push_back(id);
    });
  }

  void run_forward(std::int64_t p, std::size_t stage, std::uint32_t micro_batch) {
    const BodyRange all{0, work_.stages[stage].bodies.size()};
    if (micro_batch == first_forward_[stage] && gathers_ahead()) {
      auto buckets = buckets_of(work_, stage, true);
      std::reverse(buckets.begin(), buckets.end());
      for (const auto bucket : buckets) {
        gather_parameters(p, stage, bucket);
        run_range(p, stage, bucket, Direction::forward, micro_batch);
      }
      return;
    }
    run_range(p, stage, all, Direction::forward, micro_batch);
  }

  void run_backward(std::int64_t p, std::size_t stage, std::uint32_t micro_batch) {
    const auto& plan = work_.plan;
    const BodyRange all{0, work_.stages[stage].bodies.size()};
    const bool last = micro_batch == last_backward_[stage];
    if (plan.dp > 1 && (plan.zero == 2 || (last && plan.overlap_gradients))) {
      for (const auto bucket : buckets_of(work_, stage, true)) {
        run_range(p, stage, bucket, Direction::backward, micro_batch);
        reduce(p, stage, bucket, micro_batch);
      }
      return;
    }
    run_range(p, stage, all, Direction::backward, micro_batch);
  }

  void run_range(std::int64_t p, std::size_t stage, BodyRange range, Direction direction, std::uint32_t micro_batch) {
    const Work work{p, stage, range, direction, micro_batch, whole_[cell_index(stage, micro_batch)]};
    unroll_ ? run_ops(work) : run_cell(work);
  }

  // Fully sharded: each body is a unit whose parameters are gathered before it runs. The next unit of the rank is gathered
  // while this one runs, ahead of the reduction of this one's gradients, and no earlier than the unit before has been freed:
  // at most two gathered bodies are alive (FSDP's prefetch of one).
  struct Unit {
    std::size_t action = 0, body = 0;
  };
  void run_sharded(std::int64_t p, std::size_t index) {
    const auto& a = table_.ranks[static_cast<std::size_t>(p)][index];
    const auto direction = a.kind == Action::Kind::forward ? Direction::forward : Direction::backward;
    const auto n = work_.stages[a.stage].bodies.size();
    for (std::size_t i = 0; i < n; ++i) {
      const auto body = direction == Direction::forward ? i : n - 1 - i;
      if (!units_.contains(rank(p, 0, 0))) gather_unit(p, {index, body});
      each_rank_of(p, [&](std::int32_t r) { lane(r).joins.push_back(*units_[r].gather); });
      if (const auto next = unit_after(p, index, i)) gather_unit(p, *next);
      run_range(p, a.stage, {body, body + 1}, direction, a.micro_batch);
      each_rank_of(p, [&](std::int32_t r) { units_[r].freed = *lane(r).last; });
      if (direction == Direction::backward) reduce(p, a.stage, {body, body + 1}, a.micro_batch);
    }
  }
  std::optional<Unit> unit_after(std::int64_t p, std::size_t index, std::size_t place) const {
    const auto& actions = table_.ranks[static_cast<std::size_t>(p)];
    auto from = place + 1;
    for (; index < actions.size(); ++index, from = 0) {
      const auto n = work_.stages[actions[index].stage].bodies.size();
      if (from < n) return Unit{index, actions[index].kind == Action::Kind::forward ? from : n - 1 - from};
    }
    return std::nullopt;
  }
  void gather_unit(std::int64_t p, Unit unit) {
    const auto& a = table_.ranks[static_cast<std::size_t>(p)][unit.action];
    const auto spec = gather_spec(a.stage, {unit.body, unit.body + 1});
    for (const auto& members : data_groups(p)) {
      const auto id = begin_op(spec, {a.stage, static_cast<std::uint16_t>(unit.body), Phase::parameter_gather,
                                      static_cast<std::uint16_t>(a.kind == Action::Kind::forward ? 0 : 1), a.micro_batch});
      for (const auto r : members) {
        if (units_[r].freed) depend(*units_[r].freed);
        units_[r].gather = id;
      }
      for (const auto r : members) occupy(r, Stream::data);
      end_op();
    }
  }

  bool gathers_ahead() const {
    return (work_.plan.zero == 1 || work_.plan.zero == 2) && work_.plan.dp > 1 && work_.plan.overlap_parameters;
  }
  double range_parameters(std::size_t stage, BodyRange range) const {
    double sum = 0.0;
    for (auto i = range.begin; i < range.end; ++i) sum += work_.bodies[work_.stages[stage].bodies[i]].parameters;
    return sum;
  }
  std::uint32_t gather_spec(std::size_t stage, BodyRange range) {
    return find_or_add(collective(OpKind::all_gather, "parameter_all_gather",
                                  work_.recipe.parameter_gather_bytes * range_parameters(stage, range), data_group_));
  }
  std::uint32_t reduce_spec(std::size_t stage, BodyRange range) {
    const bool sharded = work_.plan.zero > 0;
    return find_or_add(collective(sharded ? OpKind::reduce_scatter : OpKind::all_reduce,
                                  sharded ? "gradient_reduce_scatter" : "gradient_all_reduce",
                                  work_.recipe.gradient_reduce_bytes * range_parameters(stage, range), data_group_));
  }
  void gather_parameters(std::int64_t p, std::size_t stage, BodyRange range) {
    const auto spec = gather_spec(stage, range);
    for (const auto& members : data_groups(p)) {
      const auto id = begin_op(spec, {static_cast<std::uint16_t>(stage), static_cast<std::uint16_t>(range.begin),
                                      Phase::parameter_gather, 0, 0});
      for (const auto r : members) occupy(r, Stream::data);
      end_op();
      for (const auto r : members) lane(r).joins.push_back(id);
    }
  }
  void reduce(std::int64_t p, std::size_t stage, BodyRange range, std::uint32_t micro_batch) {
    const auto spec = reduce_spec(stage, range);
    for (const auto& members : data_groups(p)) {
      begin_op(spec, {static_cast<std::uint16_t>(stage), static_cast<std::uint16_t>(range.begin),
                      Phase::gradient_reduce, 0, micro_batch});
      for (const auto r : members) depend_on_lane(lane(r));
      for (const auto r : members) occupy(r, Stream::data);
      end_op();
    }
  }

  // Gradients that were not reduced beside the backward pass.
  void finish_gradients(std::int64_t p) {
    const auto& plan = work_.plan;
    if (plan.dp == 1 || plan.zero >= 2 || plan.overlap_gradients) return;
    for (auto s = p; s < plan.stages(); s += plan.pp) {
      const auto stage = static_cast<std::size_t>(s);
      reduce(p, stage, {0, work_.stages[stage].bodies.size()},
             static_cast<std::uint32_t>(table_.micro_batches - 1));
    }
  }

  // Tied embeddings' gradients, the gradient norm over all ranks, the optimizer, and what was not gathered ahead.
  void finish_step() {
    const auto& plan = work_.plan;
    if (work_.tied_copy) reduce_tied();
    const auto norm = find_or_add(collective(OpKind::all_reduce, "gradient_norm_all_reduce", 4.0, world_group_));
    const auto id = begin_op(norm, {0, 0, Phase::gradient_norm, 0, 0});
    for (std::int32_t r = 0; r < graph_.ranks; ++r) depend_on_lane(lane(r));
    for (std::int32_t r = 0; r < graph_.ranks; ++r) occupy(r, Stream::data);
    end_op();
    for (std::int64_t p = 0; p < plan.pp; ++p) {
      const auto spec = find_or_add(optimizer_spec(work_.optimizer_share_of_rank(p), plan, work_.recipe));
      each_rank_of(p, [&](std::int32_t r) {
        lane(r).joins = {id};
        compute(r, spec, {static_cast<std::uint16_t>(p), 0, Phase::optimizer, 0, 0});
      });
    }
    if ((plan.zero == 1 || plan.zero == 2) && plan.dp > 1 && !plan.overlap_parameters) {
      for (std::int64_t p = 0; p < plan.pp; ++p) gather_at_the_end(p);
    }
  }
  void gather_at_the_end(std::int64_t p) {
    for (auto s = p; s < work_.plan.stages(); s += work_.plan.pp) {
      const auto stage = static_cast<std::size_t>(s);
      const auto spec = gather_spec(stage, {0, work_.stages[stage].bodies.size()});
      for (const auto& members : data_groups(p)) {
        begin_op(spec, {static_cast<std::uint16_t>(stage), 0, Phase::parameter_gather, 0, 0});
        for (const auto r : members) depend_on_lane(lane(r));
        for (const auto r : members) occupy(r, Stream::data);
        end_op();
      }
    }
  }
  void reduce_tied() {
    const auto spec = add_spec(collective(OpKind::all_reduce, "tied_embedding_all_reduce",
                                          work_.recipe.gradient_reduce_bytes * work_.tied_parameters, tied_group_));
    for (std::int64_t d = 0; d < dp_; ++d) {
      for (std::int64_t t = 0; t < tp_; ++t) {
        const std::int32_t both[] = {rank(0, d, t), rank(work_.plan.pp - 1, d, t)};
        begin_op(spec, {0, 0, Phase::tied_gradient, 0, 0});
        for (const auto r : both) depend_on_lane(lane(r));
        for (const auto r : both) occupy(r, Stream::data);
        end_op();
      }
    }
  }

  const ScheduleTable& table_;
  Grain grain_;
  std::int16_t tied_group_ = -1;
  std::vector<std::int16_t> forward_edge_, backward_edge_;
  std::map<std::int16_t, std::optional<std::uint32_t>> send_specs_;
  std::vector<std::uint32_t> first_forward_, last_backward_;   // micro-batch, by stage
  std::vector<std::pair<std::size_t, std::size_t>> unrolled_;  // by pipeline rank: actions before and from here on
  bool unroll_ = false;                                        // the action that is being written
  std::vector<bool> whole_;                                    // by stage and micro-batch
  std::vector<bool> finished_;                                 // last stage's forward, by micro-batch
  std::vector<std::map<std::uint32_t, std::vector<OpId>>> arrived_;
  struct Units {
    std::optional<OpId> gather;  // of the next unit
    std::optional<OpId> freed;   // end of the last unit
  };
  std::map<std::int32_t, Units> units_;
};

}  // namespace

std::string_view name_of(Grain grain) {
  switch (grain) {
    case Grain::cell: return "cell";
    case Grain::mixed: return "mixed";
    case Grain::op: return "op";
  }
  CORE_ASSERT(false);
}

OpSpec optimizer_spec(const OptimizerShare& whole, const ParallelPlan& plan, const Recipe& recipe) {
  const double part = plan.zero > 0 ? 1.0 / static_cast<double>(plan.dp) : 1.0;
  const OptimizerShare mine{whole.parameters * part, whole.matrices * part, whole.newton_schulz * part};
  const OptimizerWork work = optimizer_work(recipe, mine);
  const double cleared = plan.zero >= 2 ? mine.parameters : whole.parameters;
  // Gathered weights are cast where they are gathered, in each micro-batch.
  const double cast = plan.zero >= 3 && plan.dp > 1 ? 0.0 : whole.matrices;
  OpSpec spec;
  spec.kind = OpKind::optimizer;
  spec.name = std::string(name_of(recipe.optimizer));
  spec.format = work.flops.value > 0.0 ? recipe.newton_schulz_format : Format::fp32;
  spec.m = static_cast<std::int64_t>(std::llround(mine.parameters));
  spec.flops = work.flops;
  spec.bytes = work.traffic + Bytes{cleared * recipe.gradient_bytes + cast * recipe.weight_cast_bytes_of_step()};
  return spec;
}

StepGraph lower(const StepWork& work, const ScheduleTable& table, Grain grain, Fold fold) {
  CORE_ASSERT(table.stages() == work.plan.stages());
  return Lowering(work, table, grain, fold).run();
}

}  // namespace core

#include "core/graph/lower.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/error.h"

namespace core {

namespace {

bool splits_backward(const ScheduleTable& table) {
  for (const auto& rank : table.ranks) {
    for (const auto& a : rank) {
      if (a.kind == Action::Kind::weight_gradient) return true;
    }
  }
  return false;
}

// Walks a schedule table in an order in which it can run, and writes the operations of each action.
class Lowering : private GraphWriter {
 public:
  Lowering(const StepWork& work, const ScheduleTable& table, Grain grain, Fold fold)
      : GraphWriter(work, fold, splits_backward(table)), table_(table), grain_(grain) {}

  StepGraph run() {
    prepare();
    walk();
    for (std::int64_t p = 0; p < work_.plan.pp; ++p) finish_gradients(p);
    finish_step();
    return std::move(graph_);
  }

 private:
  void prepare() {
    if (work_.tied_copy) {
      tied_group_ = add_group({"tied", 0, (work_.plan.pp - 1) * work_.plan.ranks_of_stage(), 2});
    }
    CORE_ASSERT(table_.stages() < 4096 && table_.micro_batches < (std::int64_t{1} << 24));
    finished_.assign(cells(), false);
    arrived_.resize(static_cast<std::size_t>(table_.stages()) * 2);
    units_.resize(lanes_.size());
    last_data_.resize(lanes_.size());
    plan_pieces();
  }
  std::size_t cells() const { return static_cast<std::size_t>(table_.stages() * table_.micro_batches); }
  std::size_t cell_index(std::size_t stage, std::uint32_t micro_batch) const {
    return stage * static_cast<std::size_t>(table_.micro_batches) + micro_batch;
  }
  std::size_t model_stage(std::size_t stage) const {
    return static_cast<std::size_t>(table_.model_stage(static_cast<std::int64_t>(stage)));
  }

  bool reduces_in_pieces(bool last) const {
    return traffic_.reduces() && (traffic_.reduces_each() || (last && work_.plan.overlap_gradients));
  }
  // Gradients of a micro-batch are complete after its whole backward, or after its W.
  static bool completes(Part part) { return part == Part::backward || part == Part::weight_gradient; }

  // Which actions of a rank are written in pieces: all at op grain; at mixed grain, where data-parallel communication may
  // run beside them. That is every action where each micro-batch communicates; else those up to the last first forward of
  // the rank's stages, whose parameters are gathered ahead, and those from the first last backward on. The saved tensors of
  // a micro-batch are one where all of its actions run as one operation each.
  void plan_pieces() {
    const auto stages = static_cast<std::size_t>(table_.stages());
    const bool edges_only = !traffic_.reduces_each() && !traffic_.gathers_units();
    whole_.assign(cells(), true);
    first_forward_.assign(stages, 0);
    last_backward_.assign(stages, 0);
    for (const auto& actions : table_.ranks) {
      auto& [head, tail] = unrolled_.emplace_back(0, actions.size());
      std::vector<bool> seen(stages, false);
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const auto& a = actions[i];
        if (a.kind != Part::forward || seen[a.stage]) continue;
        seen[a.stage] = true;
        first_forward_[a.stage] = a.micro_batch;
        if (traffic_.gathers_ahead()) head = i + 1;
      }
      seen.assign(stages, false);
      for (auto i = actions.size(); i-- > 0;) {
        const auto& a = actions[i];
        if (!completes(a.kind) || seen[a.stage]) continue;
        seen[a.stage] = true;
        last_backward_[a.stage] = a.micro_batch;
        if (traffic_.reduces() && work_.plan.overlap_gradients) tail = i;
      }
      if (grain_ == Grain::cell) head = 0, tail = actions.size();
      if (grain_ == Grain::op || (grain_ == Grain::mixed && !edges_only)) head = actions.size();
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const auto& a = actions[i];
        const bool edge = (a.kind == Part::forward && a.micro_batch == first_forward_[a.stage]) ||
                          (a.kind != Part::forward && a.micro_batch == last_backward_[a.stage]);
        if (i < head || i >= tail || !edges_only || edge) whole_[cell_index(a.stage, a.micro_batch)] = false;
      }
    }
  }

  void walk() {
    std::vector<std::size_t> next(table_.ranks.size(), 0);
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t p = 0; p < table_.ranks.size(); ++p) {
        const auto& actions = table_.ranks[p];
        while (next[p] < actions.size() && ready(actions[next[p]]) &&
               (!actions[next[p]].with_next || ready(actions[next[p] + 1]))) {
          next[p] += run_action(static_cast<std::int64_t>(p), next[p]);
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
    if (a.kind == Part::weight_gradient) return true;  // its I stands before it
    const bool backward = a.kind != Part::forward;
    if (!backward) return table_.is_first(a.stage) || inbox(a.stage, false).contains(a.micro_batch);
    if (!finished_[cell_index(a.stage, a.micro_batch)]) return false;
    return table_.is_last(a.stage) || inbox(a.stage, true).contains(a.micro_batch);
  }

  // One action, or two that overlap. Returns how many.
  std::size_t run_action(std::int64_t p, std::size_t index) {
    const auto& a = table_.ranks[static_cast<std::size_t>(p)][index];
    const auto [head, tail] = unrolled_[static_cast<std::size_t>(p)];
    const auto unrolls = [head = head, tail = tail](std::size_t i) { return i < head || i >= tail; };
    unroll_ = unrolls(index);
    receive(p, a);
    if (a.with_next) {
      const auto& b = table_.ranks[static_cast<std::size_t>(p)][index + 1];
      receive(p, b);
      if (!in_pieces(a) && !in_pieces(b)) {
        unroll_ = unroll_ || unrolls(index + 1);
        run_pair(p, a, b);
      } else {
        run_one(p, index);
        unroll_ = unrolls(index + 1);
        run_one(p, index + 1);
      }
      send(p, a);
      send(p, b);
      return 2;
    }
    run_one(p, index);
    send(p, a);
    return 1;
  }
  void run_one(std::int64_t p, std::size_t index) {
    const auto& a = table_.ranks[static_cast<std::size_t>(p)][index];
    if (traffic_.gathers_units()) run_sharded(p, index);
    else if (a.kind == Part::forward) run_forward(p, a);
    else run_backward(p, a);
  }
  // Whether the action has data-parallel communication between its bodies.
  bool in_pieces(const Action& a) const {
    if (traffic_.gathers_units()) return true;
    if (a.kind == Part::forward) return traffic_.gathers_ahead() && a.micro_batch == first_forward_[a.stage];
    return completes(a.kind) && reduces_in_pieces(a.micro_batch == last_backward_[a.stage]);
  }
  void run_pair(std::int64_t p, const Action& a, const Action& b) {
    const auto& forward = a.kind == Part::forward ? a : b;
    const auto& backward = a.kind == Part::forward ? b : a;
    const auto f = work_of(p, forward, all_of(forward)), g = work_of(p, backward, all_of(backward));
    unroll_ ? run_pair_ops(f, g) : run_pair_cell(f, g);
  }

  void receive(std::int64_t p, const Action& a) {
    if (a.kind == Part::weight_gradient) return;
    auto& box = inbox(a.stage, a.kind != Part::forward);
    const auto found = box.find(a.micro_batch);
    if (found == box.end()) return;
    std::size_t i = 0;
    each_rank_of(p, [&](std::int32_t r) {
      if (!found->second.empty()) lane(r).joins.push_back(found->second[i++]);
    });
    box.erase(found);
  }
  void send(std::int64_t p, const Action& a) {
    if (a.kind == Part::weight_gradient) return;
    const bool backward = a.kind != Part::forward;
    if (!backward) finished_[cell_index(a.stage, a.micro_batch)] = true;
    if (backward ? table_.is_first(a.stage) : table_.is_last(a.stage)) return;
    const auto to = static_cast<std::size_t>(backward ? a.stage - 1 : a.stage + 1);
    auto& box = inbox(to, backward)[a.micro_batch];
    const auto to_rank = table_.rank_of(static_cast<std::int64_t>(to));
    if (to_rank == p) return;  // the next stage is here: the compute queue orders them
    const auto spec = send_spec(p, to_rank, backward);
    each_rank_of(p, [&](std::int32_t r) {
      const auto id = begin_op(spec, {a.stage, 0, backward ? Phase::send_backward : Phase::send_forward, 0, a.micro_batch});
      depend_on_lane(lane(r));
      occupy(r, backward ? Stream::send_backward : Stream::send_forward);
      end_op();
      box.push_back(id);
    });
  }
  std::uint32_t send_spec(std::int64_t from, std::int64_t to, bool backward) {
    const auto [found, added] = send_specs_.try_emplace({from, to, backward}, 0);
    if (!added) return found->second;
    const auto [edge, is_new] = edges_.try_emplace({from, to}, std::int16_t{-1});
    const auto stride = work_.plan.ranks_of_stage();
    if (is_new) {
      edge->second =
          add_group({"pp" + std::to_string(from) + ">" + std::to_string(to), from * stride, (to - from) * stride, 2});
    }
    return found->second = add_spec(collective(OpKind::send_receive, backward ? "send_gradient" : "send_activation",
                                               work_.send_bytes, edge->second));
  }

  BodyRange all_of(const Action& a) const { return {0, work_.stages[model_stage(a.stage)].bodies.size()}; }
  Work work_of(std::int64_t p, const Action& a, BodyRange range) const {
    return {p, a.stage, model_stage(a.stage), range, a.kind, a.micro_batch, whole_[cell_index(a.stage, a.micro_batch)]};
  }
  void run_range(std::int64_t p, const Action& a, BodyRange range) {
    const auto work = work_of(p, a, range);
    unroll_ ? run_ops(work) : run_cell(work);
  }

  void run_forward(std::int64_t p, const Action& a) {
    if (!in_pieces(a)) return run_range(p, a, all_of(a));
    auto buckets = buckets_of(work_, model_stage(a.stage), true);
    std::reverse(buckets.begin(), buckets.end());
    for (const auto bucket : buckets) {
      gather_updated(p, a.stage, bucket);
      run_range(p, a, bucket);
    }
  }

  void run_backward(std::int64_t p, const Action& a) {
    if (!in_pieces(a)) return run_range(p, a, all_of(a));
    for (const auto bucket : buckets_of(work_, model_stage(a.stage), true)) {
      run_range(p, a, bucket);
      reduce(p, a.stage, bucket, a.micro_batch);
    }
  }

  // Fully sharded: each body is a unit whose parameters are gathered before it runs. Two units are gathered at first; when one
  // is done, and freed, the one after the next is queued, behind the reduction of its gradients: at most two gathered bodies are
  // alive (FSDP's prefetch of one). W needs no parameters.
  struct Unit {
    std::size_t action = 0, body = 0;
  };
  void run_sharded(std::int64_t p, std::size_t index) {
    const auto& a = table_.ranks[static_cast<std::size_t>(p)][index];
    const auto n = work_.stages[model_stage(a.stage)].bodies.size();
    const bool gathers = a.kind != Part::weight_gradient;
    for (std::size_t i = 0; i < n; ++i) {
      const auto body = body_at(a, i);
      if (gathers) take_unit(p);
      run_range(p, a, {body, body + 1});
      if (completes(a.kind) && reduces_in_pieces(a.micro_batch == last_backward_[a.stage])) {
        reduce(p, a.stage, {body, body + 1}, a.micro_batch);
      }
      if (gathers) gather_next(p);
    }
  }
  std::size_t body_at(const Action& a, std::size_t i) const {
    const auto n = work_.stages[model_stage(a.stage)].bodies.size();
    return a.kind == Part::forward ? i : n - 1 - i;
  }
  // The next unit is about to run: it waits for its parameters.
  void take_unit(std::int64_t p) {
    if (!units_[static_cast<std::size_t>(rank(p, 0))].started) gather_next(p), gather_next(p);
    each_rank_of(p, [&](std::int32_t r) {
      auto& mine = units_[static_cast<std::size_t>(r)];
      CORE_ASSERT(!mine.gathers.empty());
      if (mine.gathers.front()) lane(r).joins.push_back(*mine.gathers.front());
      mine.gathers.erase(mine.gathers.begin());
    });
  }
  void gather_next(std::int64_t p) {
    const auto& actions = table_.ranks[static_cast<std::size_t>(p)];
    auto& ahead = units_[static_cast<std::size_t>(rank(p, 0))].ahead;
    each_rank_of(p, [&](std::int32_t r) { units_[static_cast<std::size_t>(r)].started = true; });
    for (; ahead.action < actions.size(); ++ahead.action, ahead.body = 0) {
      const auto& a = actions[ahead.action];
      if (a.kind == Part::weight_gradient) continue;
      if (ahead.body < work_.stages[model_stage(a.stage)].bodies.size()) {
        gather_unit(p, a, body_at(a, ahead.body++));
        return;
      }
    }
  }
  void gather_unit(std::int64_t p, const Action& a, std::size_t body) {
    each_rank_of(p, [&](std::int32_t r) { units_[static_cast<std::size_t>(r)].gathers.emplace_back(); });
    std::uint16_t slot = a.kind == Part::forward ? 0 : 16;
    for (const auto& op : traffic_.unit_gather(work_.parameters_of(model_stage(a.stage), {body, body + 1}))) {
      const auto spec = spec_of(op);
      for (const auto& members : groups_of(p, op.group)) {
        const auto id = begin_op(
            spec, {a.stage, static_cast<std::uint16_t>(body), Phase::parameter_gather, slot, a.micro_batch});
        for (const auto r : members) {
          if (const auto& last = lane(r).last) depend(*last);  // the unit that has just been freed
          units_[static_cast<std::size_t>(r)].gathers.back() = id;
        }
        for (const auto r : members) occupy(r, Stream::data);
        end_op();
      }
      ++slot;
    }
  }

  // Parameters that the last step updated, gathered at the start of this one.
  void gather_updated(std::int64_t p, std::size_t stage, BodyRange range) {
    std::uint16_t slot = 0;
    for (const auto& op : traffic_.updated_gather(work_.parameters_of(model_stage(stage), range))) {
      const auto spec = spec_of(op);
      for (const auto& members : groups_of(p, op.group)) {
        const auto id = begin_op(spec, {static_cast<std::uint16_t>(stage), static_cast<std::uint16_t>(range.begin),
                                        Phase::parameter_gather, slot, 0});
        for (const auto r : members) occupy(r, Stream::data);
        end_op();
        for (const auto r : members) lane(r).joins.push_back(id);
      }
      ++slot;
    }
  }
  void reduce(std::int64_t p, std::size_t stage, BodyRange range, std::uint32_t micro_batch) {
    const auto n = work_.parameters_of(model_stage(stage), range);
    std::uint16_t slot = 0;
    const auto write = [&](const StateOps& ops) {
      for (const auto& op : ops) write_data(p, op, {static_cast<std::uint16_t>(stage), static_cast<std::uint16_t>(range.begin),
                                                    Phase::gradient_reduce, slot++, micro_batch});
    };
    write(traffic_.reduce_each(n));
    if (micro_batch == last_backward_[stage]) write(traffic_.reduce_last(n));
  }
  // A collective of the data-parallel queue that waits for all that its ranks have done.
  void write_data(std::int64_t p, const StateOp& op, OpKey key) {
    const auto spec = spec_of(op);
    for (const auto& members : groups_of(p, op.group)) {
      const auto id = begin_op(spec, key);
      for (const auto r : members) depend_on_lane(lane(r));
      for (const auto r : members) occupy(r, Stream::data);
      end_op();
      for (const auto r : members) last_data_[static_cast<std::size_t>(r)] = id;
    }
  }

  // Gradients that were not reduced beside the backward pass.
  void finish_gradients(std::int64_t p) {
    if (!traffic_.reduces() || traffic_.reduces_each() || work_.plan.overlap_gradients) return;
    for (std::int64_t s = 0; s < table_.stages(); ++s) {
      if (table_.rank_of(s) != p) continue;
      const auto stage = static_cast<std::size_t>(s);
      reduce(p, stage, {0, work_.stages[model_stage(stage)].bodies.size()}, last_backward_[stage]);
    }
  }

  // Tied embeddings' gradients, those of copies of a stage, the gradient norm over all ranks, the optimizer, and what was not
  // gathered ahead.
  void finish_step() {
    const auto& plan = work_.plan;
    if (work_.tied_copy) reduce_tied();
    if (table_.placement == Placement::both_ways) write_copies(Copies::reduce);
    std::optional<OpId> norm;
    if (!plan.post_validation) norm = write_norm();
    const double copies = table_.placement == Placement::both_ways && traffic_.shards_optimizer() ? 2.0 : 1.0;
    for (std::int64_t p = 0; p < plan.pp; ++p) {
      each_rank_of(p, [&](std::int32_t r) {
        auto& joins = lane(r).joins;
        if (norm) joins = {*norm};
        else if (const auto id = last_data_[static_cast<std::size_t>(r)]) joins.push_back(*id);
      });
      const auto share = rank_parameters(work_, p).share(copies);
      gather_matrices(p, share);
      std::uint16_t slot = 0;
      for (const auto& op : optimizer_specs(share, plan, work_.recipe)) {
        const auto spec = find_or_add(op);
        each_rank_of(p, [&](std::int32_t r) {
          compute(r, spec, {static_cast<std::uint16_t>(p), 0, Phase::optimizer, slot, 0});
        });
        ++slot;
      }
    }
    for (std::int64_t p = 0; p < plan.pp; ++p) finish_weights(p);
    if (table_.placement == Placement::both_ways) write_copies(Copies::gather);
  }
  // The optimizer waits for the matrices that it works on.
  void gather_matrices(std::int64_t p, const RankParameters& share) {
    std::uint16_t slot = 0;
    for (const auto& op : traffic_.matrix_gather(share.all, share.matrix_squares)) {
      write_data(p, op, {static_cast<std::uint16_t>(p), 0, Phase::optimizer, static_cast<std::uint16_t>(16 + slot++), 0});
      each_rank_of(p, [&](std::int32_t r) { lane(r).joins = {*last_data_[static_cast<std::size_t>(r)]}; });
    }
  }
  OpId write_norm() {
    const auto norm = find_or_add(collective(OpKind::all_reduce, "gradient_norm_all_reduce", 4.0, world_group_));
    const auto id = begin_op(norm, {0, 0, Phase::gradient_norm, 0, 0});
    for (std::int32_t r = 0; r < graph_.ranks; ++r) depend_on_lane(lane(r));
    for (std::int32_t r = 0; r < graph_.ranks; ++r) occupy(r, Stream::data);
    end_op();
    return id;
  }
  // Updated weights go where they are kept, unless that is done ahead of the next step's first forward.
  void finish_weights(std::int64_t p) {
    for (const auto s : work_.stages_of_rank(p)) {
      std::uint16_t slot = 32;
      for (const auto& op : traffic_.after_optimizer(work_.parameters_of_stage(static_cast<std::size_t>(s)))) {
        write_data(p, op, {static_cast<std::uint16_t>(s), 0, Phase::parameter_gather, slot++, 0});
      }
    }
  }
  // Pipeline ranks p and pp - 1 - p hold the same stages.
  enum class Copies : std::uint8_t { reduce, gather };
  void write_copies(Copies what) {
    const auto& plan = work_.plan;
    for (std::int64_t p = 0; p < plan.pp / 2; ++p) {
      const auto other = plan.pp - 1 - p, stride = (other - p) * plan.ranks_of_stage();
      const auto n = work_.parameters_of_rank(p);
      for (const auto& op : what == Copies::reduce ? traffic_.reduce_copies(n, stride) : traffic_.gather_copies(n, stride)) {
        const auto [group, is_new] = copies_.try_emplace(p, std::int16_t{-1});
        if (is_new) group->second = add_group({"copies" + std::to_string(p), p * plan.ranks_of_stage(), stride, 2});
        const auto spec = find_or_add(collective(op.kind, std::string(op.name), op.bytes, group->second));
        for (std::int64_t i = 0; i < width_; ++i) {
          pair_collective(spec, rank(p, i), rank(other, i),
                          {static_cast<std::uint16_t>(p), 0,
                           what == Copies::reduce ? Phase::gradient_reduce : Phase::parameter_gather, 64, 0});
        }
      }
    }
  }
  void reduce_tied() {
    const auto spec = add_spec(collective(OpKind::all_reduce, "tied_embedding_all_reduce",
                                          work_.recipe.gradient_reduce_bytes * work_.tied_parameters, tied_group_));
    for (std::int64_t i = 0; i < width_; ++i) {
      pair_collective(spec, rank(0, i), rank(work_.plan.pp - 1, i), {0, 0, Phase::tied_gradient, 0, 0});
    }
  }
  void pair_collective(std::uint32_t spec, std::int32_t a, std::int32_t b, OpKey key) {
    const auto id = begin_op(spec, key);
    for (const auto r : {a, b}) depend_on_lane(lane(r));
    for (const auto r : {a, b}) occupy(r, Stream::data);
    end_op();
    for (const auto r : {a, b}) last_data_[static_cast<std::size_t>(r)] = id;
  }

  const ScheduleTable& table_;
  Grain grain_;
  std::int16_t tied_group_ = -1;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int16_t> edges_;  // between pipeline ranks
  std::map<std::int64_t, std::int16_t> copies_;                          // by pipeline rank
  std::map<std::tuple<std::int64_t, std::int64_t, bool>, std::uint32_t> send_specs_;
  std::vector<std::uint32_t> first_forward_, last_backward_;   // micro-batch, by stage; last: whose gradients complete last
  std::vector<std::pair<std::size_t, std::size_t>> unrolled_;  // by pipeline rank: actions before and from here on
  bool unroll_ = false;                                        // the action that is being written
  std::vector<bool> whole_;                                    // by stage and micro-batch
  std::vector<bool> finished_;                                 // forward, by stage and micro-batch
  std::vector<std::map<std::uint32_t, std::vector<OpId>>> arrived_;
  struct Units {
    bool started = false;
    Unit ahead;                                 // the next one to be gathered; `body` counts in the order of running
    std::vector<std::optional<OpId>> gathers;  // of the units that come next: at most two
  };
  std::vector<Units> units_;                    // by rank
  std::vector<std::optional<OpId>> last_data_;  // by rank: last reduction
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

namespace {

// Newton-Schulz work of a rank on matrices that it shares with others, all of which do it: a matrix of e of n elements and f
// FLOPs is on 1 + e (o - 1) / n ranks (StateTraffic::matrix_gather), so that a rank has (o - 1) / o sum(f e) / n more than the
// even share of sum(f). 0 where matrices are given to ranks whole.
double newton_schulz_of_cut_matrices(const RankParameters& whole, const StateTraffic& traffic, const Recipe& recipe) {
  if (recipe.matrix_gather_bytes <= 0.0) return 0.0;
  const auto of = [](const ShardSizes& sizes, double sum, double elements) {
    const double parts = static_cast<double>(sizes.optimizer);
    return elements > 0.0 ? (parts - 1.0) / parts * sum / elements : 0.0;
  };
  return of(traffic.dense(), whole.newton_schulz_elements.dense, whole.all.dense) +
         of(traffic.experts(), whole.newton_schulz_elements.experts, whole.all.experts);
}

}  // namespace

OpSpec optimizer_spec(const RankParameters& whole, const ParallelPlan& plan, const Recipe& recipe) {
  const StateTraffic traffic(plan, recipe);
  const double all = traffic.optimizer_elements(whole.all);
  const double part = whole.all.all() > 0.0 ? all / whole.all.all() : 0.0;
  const double newton_schulz = whole.newton_schulz * part + newton_schulz_of_cut_matrices(whole, traffic, recipe);
  const OptimizerWork work = optimizer_work(recipe, {all, traffic.optimizer_elements(whole.gemm), newton_schulz});
  const double cleared = traffic.gradient_elements(whole.all);
  // Gathered weights are cast where they are gathered, in each micro-batch.
  const double cast = traffic.gathers_units() ? 0.0 : whole.gemm.all();
  OpSpec spec;
  spec.kind = OpKind::optimizer;
  spec.name = std::string(name_of(recipe.optimizer));
  spec.format = work.flops.value > 0.0 ? recipe.newton_schulz_format : Format::fp32;
  spec.m = static_cast<std::int64_t>(std::llround(all));
  spec.flops = work.flops;
  spec.bytes = work.traffic + Bytes{cleared * recipe.gradient_bytes + cast * recipe.weight_cast_bytes_of_step()};
  return spec;
}

std::vector<OpSpec> optimizer_specs(const RankParameters& whole, const ParallelPlan& plan, const Recipe& recipe) {
  auto all = optimizer_spec(whole, plan, recipe);
  if (!plan.offload.optimizer) return {all};
  const StateTraffic traffic(plan, recipe);
  const double updated = traffic.optimizer_elements(whole.all);
  const double cast = traffic.gathers_units() ? 0.0 : whole.gemm.all() * recipe.weight_cast_bytes_of_step();
  auto host = all;
  host.kind = OpKind::host_optimizer;
  host.name = all.name.str() + "_on_host";
  host.bytes = optimizer_work(recipe, {updated, traffic.optimizer_elements(whole.gemm), 0.0}).traffic;
  const auto cleared_there = [&](const ShardSizes& sizes, double n) {
    return sizes.gradients_on_host ? n / static_cast<double>(sizes.gradients) : 0.0;
  };
  host.bytes += Bytes{recipe.gradient_bytes * (cleared_there(traffic.dense(), whole.all.dense) +
                                               cleared_there(traffic.experts(), whole.all.experts))};
  auto device = all;
  device.name = "clear_and_cast";
  device.m = 0;
  device.bytes = Bytes{traffic.gradient_elements(whole.all) * recipe.gradient_bytes + cast};
  if (device.bytes.value > 0.0) return {host, device};
  return {host};
}

StepGraph lower(const StepWork& work, const ScheduleTable& table, Grain grain, Fold fold) {
  CORE_ASSERT(table.placement == work.placement);
  CORE_ASSERT(table.stages() == (table.placement == Placement::both_ways ? 2 : 1) * work.plan.stages());
  return Lowering(work, table, grain, fold).run();
}

}  // namespace core

#include "core/graph/lower.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "core/error.h"

namespace core {

namespace {

std::int64_t whole_bytes(double bytes) { return static_cast<std::int64_t>(std::llround(bytes)); }

// What the next operation of a rank's compute queue has to wait for besides the queue itself.
struct Lane {
  std::optional<OpId> last;           // last operation of the chain, any queue
  std::vector<OpId> joins;            // collectives that the next operation waits for
  std::optional<OpId> beside;         // an overlapped collective: joined by the operation after the next
};

class Lowering {
 public:
  Lowering(const StepWork& work, const ScheduleTable& table, Grain grain, Fold fold)
      : work_(work),
        table_(table),
        grain_(grain),
        tp_(fold == Fold::yes ? 1 : work.plan.tp),
        dp_(fold == Fold::yes ? 1 : work.plan.dp),
        fold_(fold) {}

  StepGraph run() {
    prepare();
    walk();
    for (std::int64_t p = 0; p < work_.plan.pp; ++p) finish_gradients(p);
    finish_step();
    return std::move(graph_);
  }

 private:
  // --- ranks -----------------------------------------------------------------------------------------------
  std::int32_t rank(std::int64_t p, std::int64_t d, std::int64_t t) const {
    return static_cast<std::int32_t>((p * dp_ + d) * tp_ + t);
  }
  static std::uint32_t queue(std::int32_t rank, Stream stream) {
    return static_cast<std::uint32_t>(rank * streams_per_rank) + static_cast<std::uint32_t>(stream);
  }
  Lane& lane(std::int32_t rank) { return lanes_[static_cast<std::size_t>(rank)]; }
  template <class Function>
  void each_rank_of(std::int64_t p, Function function) {
    for (std::int64_t d = 0; d < dp_; ++d) {
      for (std::int64_t t = 0; t < tp_; ++t) function(rank(p, d, t));
    }
  }
  // Tensor-parallel groups of a stage, or data-parallel ones, as lists of lowered ranks.
  std::vector<std::vector<std::int32_t>> tensor_groups(std::int64_t p) const {
    std::vector<std::vector<std::int32_t>> groups(static_cast<std::size_t>(dp_));
    for (std::int64_t d = 0; d < dp_; ++d) {
      for (std::int64_t t = 0; t < tp_; ++t) groups[static_cast<std::size_t>(d)].push_back(rank(p, d, t));
    }
    return groups;
  }
  std::vector<std::vector<std::int32_t>> data_groups(std::int64_t p) const {
    std::vector<std::vector<std::int32_t>> groups(static_cast<std::size_t>(tp_));
    for (std::int64_t t = 0; t < tp_; ++t) {
      for (std::int64_t d = 0; d < dp_; ++d) groups[static_cast<std::size_t>(t)].push_back(rank(p, d, t));
    }
    return groups;
  }

  // --- specs -----------------------------------------------------------------------------------------------
  std::uint32_t add_spec(OpSpec spec) {
    graph_.specs.push_back(std::move(spec));
    return static_cast<std::uint32_t>(graph_.specs.size() - 1);
  }
  std::int16_t add_group(CommGroup group) {
    graph_.groups.push_back(std::move(group));
    return static_cast<std::int16_t>(graph_.groups.size() - 1);
  }
  OpSpec collective(OpKind kind, std::string name, double bytes, std::int16_t group) const {
    OpSpec spec;
    spec.kind = kind;
    spec.name = std::move(name);
    spec.format = format_of(work_.recipe.compute_format);
    spec.bytes = Bytes{bytes};
    spec.group = group;
    return spec;
  }
  // Specs of a body's operations, bound to the plan's groups; one set a body and direction.
  const std::vector<ChainOp>& chain_of(std::uint16_t body, Direction direction) {
    auto& chain = body_chains_[static_cast<std::size_t>(body) * 2 + (direction == Direction::backward ? 1 : 0)];
    if (chain.empty()) {
      const auto& b = work_.bodies[body];
      for (const auto& op : direction == Direction::forward ? b.forward : b.backward) {
        auto spec = op.spec;
        if (op.scope == Scope::tensor) spec.group = tensor_group_;
        chain.push_back({find_or_add(spec), op.recompute, op.overlaps_next});
      }
      if (work_.framework.host_per_kernel.value > 0.0) chain.push_back(host_wait(chain, direction));
    }
    return chain;
  }
  // The GPU cannot be faster than the host that launches its kernels: what a body lacks to that is one more operation.
  ChainOp host_wait(const std::vector<ChainOp>& chain, Direction direction) {
    OpSpec spec;
    spec.kind = OpKind::host;
    spec.name = "host";
    spec.format = format_of(work_.recipe.compute_format);
    spec.direction = direction;
    spec.m = static_cast<std::int64_t>(chain.size());
    spec.n = static_cast<std::int64_t>(graph_.chains.size());
    graph_.chains.push_back(chain);
    cell_direction_.push_back(direction);
    cell_spec_.push_back(0);
    return {add_spec(spec), false, false};
  }
  std::uint32_t find_or_add(const OpSpec& spec) {
    for (std::uint32_t i = 0; i < graph_.specs.size(); ++i) {
      if (graph_.specs[i] == spec) return i;
    }
    return add_spec(spec);
  }
  // The cell that stands for bodies [begin, end) of a stage.
  std::uint32_t cell_of(std::size_t stage, BodyRange range, Direction direction) {
    auto& known = cells_[{stage, range.begin, range.end, direction}];
    if (!known) known = make_cell(stage, range, direction);
    return *known;
  }
  std::uint32_t make_cell(std::size_t stage, BodyRange range, Direction direction) {
    std::vector<ChainOp> chain;
    const auto& bodies = work_.stages[stage].bodies;
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto at = direction == Direction::forward ? i : range.end - 1 - (i - range.begin);
      const auto& part = chain_of(bodies[at], direction);
      chain.insert(chain.end(), part.begin(), part.end());
    }
    for (std::size_t i = 0; i < graph_.chains.size(); ++i) {
      if (cell_spec_[i] != 0 && graph_.chains[i] == chain && cell_direction_[i] == direction) return cell_spec_[i];
    }
    OpSpec spec;
    spec.kind = OpKind::cell;
    spec.name = direction == Direction::forward ? "forward" : "backward";
    spec.direction = direction;
    spec.format = format_of(work_.recipe.compute_format);
    spec.m = static_cast<std::int64_t>(graph_.chains.size());
    for (const auto& op : chain) spec.flops += graph_.specs[op.spec].flops;
    graph_.chains.push_back(std::move(chain));
    cell_direction_.push_back(direction);
    cell_spec_.push_back(add_spec(std::move(spec)));
    return cell_spec_.back();
  }

  // --- operations ------------------------------------------------------------------------------------------
  OpId begin_op(std::uint32_t spec, OpKey key, bool recompute = false) {
    graph_.spec.push_back(spec);
    graph_.key.push_back(key);
    graph_.recompute.push_back(recompute ? 1 : 0);
    return static_cast<OpId>(graph_.spec.size() - 1);
  }
  void depend(OpId on) { graph_.dependencies.push_back(on); }
  void occupy(std::int32_t rank, Stream stream) { graph_.queues.push_back(queue(rank, stream)); }
  void end_op() {
    graph_.dependency_begin.push_back(static_cast<std::uint32_t>(graph_.dependencies.size()));
    graph_.queue_begin.push_back(static_cast<std::uint32_t>(graph_.queues.size()));
  }

  // A kernel or cell on the compute queue. It waits for `after` and for what its lane has to join.
  OpId compute(std::int32_t r, std::uint32_t spec, OpKey key, bool recompute = false) {
    auto& l = lane(r);
    const auto id = begin_op(spec, key, recompute);
    for (const auto on : l.joins) depend(on);
    l.joins.clear();
    if (l.beside) l.joins.push_back(*l.beside), l.beside.reset();
    occupy(r, Stream::compute);
    end_op();
    l.last = id;
    return id;
  }
  // A collective of members' chains: it starts when the last member arrives.
  OpId chain_collective(const std::vector<std::int32_t>& members, std::uint32_t spec, OpKey key, bool recompute,
                        bool overlaps_next) {
    const auto id = begin_op(spec, key, recompute);
    for (const auto r : members) {
      auto& l = lane(r);
      if (l.last) depend(*l.last);
      for (const auto on : l.joins) depend(on);
    }
    for (const auto r : members) occupy(r, Stream::tensor);
    end_op();
    for (const auto r : members) {
      auto& l = lane(r);
      l.joins.clear();
      if (overlaps_next) {
        if (l.beside) l.joins.push_back(*l.beside);
        l.beside = id;
      } else {
        l.joins.push_back(id);
        l.last = id;
      }
    }
    return id;
  }
  // Makes the next operation of the lane wait for everything so far.
  void close(Lane& l) {
    if (l.beside) l.joins.push_back(*l.beside), l.beside.reset();
  }
  void depend_on_lane(const Lane& l) {
    if (l.last) depend(*l.last);
    for (const auto on : l.joins) {
      if (!l.last || on != *l.last) depend(on);
    }
  }

  // Bodies [begin, end) of a stage for one micro-batch, on all ranks of pipeline rank p: as one cell, or op by op.
  void run_cell(std::int64_t p, std::size_t stage, BodyRange range, Direction direction, std::uint32_t micro_batch) {
    const auto spec = cell_of(stage, range, direction);
    const auto phase = direction == Direction::forward ? Phase::forward : Phase::backward;
    each_rank_of(p, [&](std::int32_t r) {
      const auto id = compute(r, spec,
                              {static_cast<std::uint16_t>(stage), static_cast<std::uint16_t>(range.begin), phase, 0,
                               micro_batch});
      live(r, stage, range, direction, micro_batch, id, id);
    });
  }
  void run_ops(std::int64_t p, std::size_t stage, BodyRange range, Direction direction, std::uint32_t micro_batch) {
    const auto& bodies = work_.stages[stage].bodies;
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto at = direction == Direction::forward ? i : range.end - 1 - (i - range.begin);
      const auto& chain = chain_of(bodies[at], direction);
      const auto before = graph_.size();
      std::uint16_t slot = 0;
      for (const auto& op : chain) {
        const auto phase = op.recompute                     ? Phase::recompute
                           : direction == Direction::forward ? Phase::forward
                                                             : Phase::backward;
        const OpKey key{static_cast<std::uint16_t>(stage), static_cast<std::uint16_t>(at), phase, slot++, micro_batch};
        run_op(p, op, key);
      }
      // Memory of a body spans its operations; each rank's own first and last ones are found by their queue.
      each_rank_of(p, [&](std::int32_t r) {
        const auto [first, last] = own_span(r, static_cast<OpId>(before));
        live(r, stage, {at, at + 1}, direction, micro_batch, first, last);
      });
    }
    each_rank_of(p, [&](std::int32_t r) { close(lane(r)); });
  }
  void run_op(std::int64_t p, const ChainOp& op, OpKey key) {
    if (graph_.specs[op.spec].group >= 0) {
      for (const auto& members : tensor_groups(p)) {
        chain_collective(members, op.spec, key, op.recompute, op.overlaps_next);
      }
    } else {
      each_rank_of(p, [&](std::int32_t r) { compute(r, op.spec, key, op.recompute); });
    }
  }
  std::pair<OpId, OpId> own_span(std::int32_t r, OpId from) const {
    if (fold_ == Fold::yes) return {from, static_cast<OpId>(graph_.size() - 1)};
    std::optional<OpId> first;
    OpId last = from;
    for (OpId id = from; id < graph_.size(); ++id) {
      for (auto q = graph_.queue_begin[id]; q < graph_.queue_begin[id + 1]; ++q) {
        if (static_cast<std::int32_t>(graph_.queues[q]) / streams_per_rank == r) {
          if (!first) first = id;
          last = id;
        }
      }
    }
    return {first.value_or(from), last};
  }

  // --- memory ----------------------------------------------------------------------------------------------
  // A body's saved tensors live from its forward to its backward operations; what lives inside a cell only is one more
  // tensor. Bodies that always run together share their tensors.
  void live(std::int32_t r, std::size_t stage, BodyRange range, Direction direction, std::uint32_t micro_batch,
            OpId first, OpId last) {
    const auto& bodies = work_.stages[stage].bodies;
    CellMemory cell;
    for (auto i = range.begin; i < range.end; ++i) cell.add(memory_[bodies[i]]);
    const auto transient =
        (direction == Direction::forward ? cell.forward_peak : cell.backward_peak) - cell.saved();
    if (transient > 0) graph_.tensors.push_back({first, last, r, MemoryTerm::activations, transient});
    if (whole_[cell_index(stage, micro_batch)]) {
      saved(r, stage, range, direction, micro_batch, first, last);
    } else {
      for (auto i = range.begin; i < range.end; ++i) {
        saved(r, stage, {i, i + 1}, direction, micro_batch, first, last);
      }
    }
  }
  std::size_t cell_index(std::size_t stage, std::uint32_t micro_batch) const {
    return stage * static_cast<std::size_t>(table_.micro_batches) + micro_batch;
  }
  void saved(std::int32_t r, std::size_t stage, BodyRange range, Direction direction, std::uint32_t micro_batch,
             OpId first, OpId last) {
    std::int64_t activations = 0, logits = 0;
    for (auto i = range.begin; i < range.end; ++i) {
      const auto& body = memory_[work_.stages[stage].bodies[i]];
      activations += body.activations, logits += body.logits;
    }
    const auto slot = (((static_cast<std::uint64_t>(r) << 12 | stage) << 12 | range.begin) << 24) | micro_batch;
    if (direction == Direction::forward) {
      open_[slot] = graph_.tensors.size();
      if (activations > 0) graph_.tensors.push_back({first, last, r, MemoryTerm::activations, activations});
      if (logits > 0) graph_.tensors.push_back({first, last, r, MemoryTerm::logits, logits});
      return;
    }
    const auto found = open_.find(slot);
    CORE_ASSERT(found != open_.end());
    auto index = found->second;
    if (activations > 0) graph_.tensors[index++].last = last;
    if (logits > 0) graph_.tensors[index].last = last;
    open_.erase(found);
  }

  // --- the walk --------------------------------------------------------------------------------------------
  void prepare() {
    const auto& plan = work_.plan;
    graph_.ranks = static_cast<std::int32_t>(plan.pp * dp_ * tp_);
    graph_.multiplicity.assign(static_cast<std::size_t>(graph_.ranks), fold_ == Fold::yes ? plan.tp * plan.dp : 1);
    lanes_.resize(static_cast<std::size_t>(graph_.ranks));
    body_chains_.resize(work_.bodies.size() * 2);
    tensor_group_ = add_group({"tp", 0, 1, plan.tp});
    data_group_ = add_group({"dp", 0, plan.tp, plan.dp});
    world_group_ = add_group({"world", 0, 1, plan.gpus()});
    const auto stride = plan.tp * plan.dp;
    for (std::int64_t p = 0; p < plan.pp && plan.pp > 1; ++p) {
      const auto next = (p + 1) % plan.pp;
      forward_edge_.push_back(
          add_group({"pp" + std::to_string(p) + ">" + std::to_string(next), p * stride, (next - p) * stride, 2}));
      backward_edge_.push_back(
          add_group({"pp" + std::to_string(next) + ">" + std::to_string(p), next * stride, (p - next) * stride, 2}));
    }
    if (work_.tied_copy) tied_group_ = add_group({"tied", 0, (plan.pp - 1) * stride, 2});
    for (std::int64_t p = 0; p < plan.pp; ++p) {
      const auto m = resident_memory(rank_parameters(work_, p), plan, work_.recipe, work_.framework);
      each_rank_of(p, [&](std::int32_t) { graph_.resident.emplace_back(m.begin(), m.end()); });
    }
    for (const auto& body : work_.bodies) memory_.push_back(body_memory(body, work_.framework));
    plan_pieces();
    finished_.assign(static_cast<std::size_t>(table_.micro_batches), false);
    CORE_ASSERT(work_.stages.size() < 4096 && table_.micro_batches < (std::int64_t{1} << 24));
    arrived_.resize(work_.stages.size() * 2);
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
    if (unroll_) run_ops(p, stage, range, direction, micro_batch);
    else run_cell(p, stage, range, direction, micro_batch);
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
      const auto spec = find_or_add(optimizer_spec(work_.parameters_of_rank(p), plan, work_.recipe));
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
  const StepWork& work_;
  const ScheduleTable& table_;
  Grain grain_;
  std::int64_t tp_, dp_;
  Fold fold_;
  StepGraph graph_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<ChainOp>> body_chains_;
  std::vector<Direction> cell_direction_;
  std::vector<std::uint32_t> cell_spec_;
  std::int16_t tensor_group_ = -1, data_group_ = -1, world_group_ = -1, tied_group_ = -1;
  std::vector<std::int16_t> forward_edge_, backward_edge_;
  std::map<std::int16_t, std::optional<std::uint32_t>> send_specs_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, Direction>, std::optional<std::uint32_t>> cells_;
  std::vector<BodyMemory> memory_;
  std::vector<std::uint32_t> first_forward_, last_backward_;  // micro-batch, by stage
  std::vector<std::pair<std::size_t, std::size_t>> unrolled_;  // by pipeline rank: actions before and from here on
  bool unroll_ = false;                                        // the action that is being written
  std::vector<bool> whole_;                                    // by stage and micro-batch
  std::vector<bool> finished_;  // last stage's forward, by micro-batch
  std::vector<std::map<std::uint32_t, std::vector<OpId>>> arrived_;
  std::unordered_map<std::uint64_t, std::size_t> open_;
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

OpSpec optimizer_spec(double parameters, const ParallelPlan& plan, const Recipe& recipe) {
  const double mine = plan.zero > 0 ? parameters / static_cast<double>(plan.dp) : parameters;
  const double cleared = plan.zero >= 2 ? mine : parameters;
  OpSpec spec;
  spec.kind = OpKind::optimizer;
  spec.name = "adam";
  spec.format = Format::fp32;
  spec.m = whole_bytes(mine);
  spec.bytes =
      Bytes{mine * (2.0 * recipe.gradient_bytes +
                    2.0 * (recipe.main_weight_bytes + recipe.moment1_bytes + recipe.moment2_bytes) + recipe.weight_bytes) +
            cleared * recipe.gradient_bytes};
  return spec;
}

StepGraph lower(const StepWork& work, const ScheduleTable& table, Grain grain, Fold fold) {
  CORE_ASSERT(table.stages() == work.plan.stages());
  return Lowering(work, table, grain, fold).run();
}

}  // namespace core

#include "core/graph/graph_writer.h"

#include "core/error.h"
#include "core/graph/interleave.h"
#include "core/graph/launches.h"

namespace core {

namespace {

constexpr std::size_t parts = 4;

std::string_view name_of_part(Part part) {
  switch (part) {
    case Part::forward: return "forward";
    case Part::backward: return "backward";
    case Part::input_gradient: return "input_gradient";
    case Part::weight_gradient: return "weight_gradient";
  }
  CORE_ASSERT(false);
}

Phase phase_of(Part part) {
  switch (part) {
    case Part::forward: return Phase::forward;
    case Part::backward:
    case Part::input_gradient: return Phase::backward;
    case Part::weight_gradient: return Phase::weight_gradient;
  }
  CORE_ASSERT(false);
}

std::string_view group_name(Scope scope) {
  switch (scope) {
    case Scope::none: return "";
    case Scope::tensor: return "tp";
    case Scope::context: return "cp";
    case Scope::expert: return "ep";
    case Scope::expert_tensor: return "etp";
  }
  CORE_ASSERT(false);
}

}  // namespace

std::vector<const BodyOp*> ops_of(const Body& body, Part part) {
  std::vector<const BodyOp*> out;
  for (const auto& op : part == Part::forward ? body.forward : body.backward) {
    if (part == Part::input_gradient && op.weight_gradient) continue;
    if (part == Part::weight_gradient && !op.weight_gradient) continue;
    out.push_back(&op);
  }
  return out;
}

GraphWriter::GraphWriter(const StepWork& work, Fold fold, bool splits_backward)
    : work_(work),
      traffic_(work.plan, work.recipe),
      width_(fold == Fold::yes ? 1 : work.plan.ranks_of_stage()),
      fold_(fold),
      splits_backward_(splits_backward) {
  const auto& plan = work.plan;
  graph_.ranks = static_cast<std::int32_t>(plan.pp * width_);
  graph_.multiplicity.assign(static_cast<std::size_t>(graph_.ranks), fold == Fold::yes ? plan.ranks_of_stage() : 1);
  lanes_.resize(static_cast<std::size_t>(graph_.ranks));
  second_lanes_.resize(lanes_.size());
  body_chains_.resize(work.bodies.size() * parts);
  group_of({1, plan.tp}, "tp");
  group_of({plan.tp, plan.replicas()}, "dp");
  world_group_ = add_group({"world", 0, 1, plan.gpus()});
  for (std::int64_t p = 0; p < plan.pp; ++p) {
    const auto m = resident_memory(rank_parameters(work, p), plan, work.recipe, work.framework);
    each_rank_of(p, [&](std::int32_t) { graph_.resident.emplace_back(m.begin(), m.end()); });
  }
  for (const auto& body : work.bodies) memory_.push_back(body_memory(body, work.framework));
}

std::vector<GraphWriter::Members> GraphWriter::groups_of(std::int64_t p, GroupShape shape) const {
  std::vector<Members> groups;
  if (fold_ == Fold::yes) return {{rank(p, 0)}};
  for (std::int64_t first = 0; first < width_; ++first) {
    if (first / shape.stride % shape.size != 0) continue;
    auto& members = groups.emplace_back();
    for (std::int64_t i = 0; i < shape.size; ++i) members.push_back(rank(p, first + i * shape.stride));
  }
  return groups;
}

std::uint32_t GraphWriter::add_spec(OpSpec spec) {
  graph_.specs.push_back(std::move(spec));
  return static_cast<std::uint32_t>(graph_.specs.size() - 1);
}

std::uint32_t GraphWriter::find_or_add(const OpSpec& spec) {
  for (std::uint32_t i = 0; i < graph_.specs.size(); ++i) {
    if (graph_.specs[i] == spec) return i;
  }
  return add_spec(spec);
}

std::int16_t GraphWriter::add_group(CommGroup group) {
  graph_.groups.push_back(std::move(group));
  shapes_.emplace_back();
  return static_cast<std::int16_t>(graph_.groups.size() - 1);
}

std::int16_t GraphWriter::group_of(GroupShape shape, const std::string& name) {
  const auto [found, added] = group_index_.try_emplace({shape, name}, std::int16_t{-1});
  if (added) {
    found->second = add_group({name, 0, shape.stride, shape.size});
    shapes_.back() = shape;
  }
  return found->second;
}

OpSpec GraphWriter::collective(OpKind kind, std::string name, double bytes, std::int16_t group) const {
  OpSpec spec;
  spec.kind = kind;
  spec.name = std::move(name);
  spec.format = format_of(work_.recipe.compute_format);
  spec.bytes = Bytes{bytes};
  spec.group = group;
  return spec;
}

std::uint32_t GraphWriter::spec_of(const StateOp& op) {
  if (is_copy(op.kind)) return find_or_add(core::spec_of(op, work_.recipe.compute_format, -1));
  const auto& plan = work_.plan;
  std::string name;
  if (op.group == GroupShape{plan.tp, plan.replicas()}) name = "dp";
  else if (op.group == GroupShape{plan.ep * plan.etp, plan.expert_replicas()}) name = "edp";
  else name = (op.name.starts_with("expert") ? "edp." : "dp.") + std::to_string(op.group.size);
  return find_or_add(core::spec_of(op, work_.recipe.compute_format, group_of(op.group, name)));
}

// Specs of a body's operations, bound to the plan's groups; one set a body and part.
const std::vector<ChainOp>& GraphWriter::chain_of(std::uint16_t body, Part part) {
  auto& chain = body_chains_[static_cast<std::size_t>(body) * parts + static_cast<std::size_t>(part)];
  if (!chain.empty()) return chain;
  const auto ops = ops_of(work_.bodies[body], part);
  for (const auto* op : ops) {
    auto spec = op->spec;
    if (op->scope != Scope::none) {
      spec.group = group_of(shape_of(op->scope, work_.plan), std::string(group_name(op->scope)));
    }
    chain.push_back({find_or_add(spec), op->recompute, op->overlaps_next});
  }
  const auto launches = launches_of(work_.framework.launches, ops, work_.plan.graphs);
  const auto offloaded = work_.bodies[body].offloaded;
  if (offloaded.value > 0.0 && part != Part::weight_gradient) chain.push_back(copy_wait(chain, part, offloaded));
  if (launches > 0 && work_.framework.host_per_launch.value > 0.0) chain.push_back(host_wait(chain, part, launches));
  return chain;
}

// A chain that a wait at its end looks at.
std::int64_t GraphWriter::add_beside(const std::vector<ChainOp>& chain, Part part) {
  graph_.chains.push_back(chain);
  cell_spec_.emplace_back();
  cell_part_.push_back(part);
  return static_cast<std::int64_t>(graph_.chains.size() - 1);
}

// Offloaded activations travel beside a body: a layer's out beside the next one's forward, back beside the one before it in
// the backward; layers alike, that is a body's own bytes beside itself. What the copy outlasts the body is one more operation.
ChainOp GraphWriter::copy_wait(const std::vector<ChainOp>& chain, Part part, Bytes bytes) {
  OpSpec spec;
  spec.kind = part == Part::forward ? OpKind::copy_to_host : OpKind::copy_to_device;
  spec.name = part == Part::forward ? "activations_to_host" : "activations_to_device";
  spec.format = format_of(work_.recipe.compute_format);
  spec.direction = direction_of(part);
  spec.bytes = bytes;
  spec.n = add_beside(chain, part) + 1;
  return {add_spec(spec), false, false};
}

// The GPU cannot be faster than the host that launches its kernels: what a body lacks to that is one more operation.
ChainOp GraphWriter::host_wait(const std::vector<ChainOp>& chain, Part part, std::int64_t launches) {
  OpSpec spec;
  spec.kind = OpKind::host;
  spec.name = "host";
  spec.format = format_of(work_.recipe.compute_format);
  spec.direction = direction_of(part);
  spec.m = launches;
  spec.n = add_beside(chain, part);
  return {add_spec(spec), false, false};
}

std::vector<ChainOp> GraphWriter::chain_of_range(std::size_t stage, BodyRange range, Part part) {
  std::vector<ChainOp> chain;
  const auto& bodies = work_.stages[stage].bodies;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const auto at = part == Part::forward ? i : range.end - 1 - (i - range.begin);
    const auto& piece = chain_of(bodies[at], part);
    chain.insert(chain.end(), piece.begin(), piece.end());
  }
  return chain;
}

std::uint32_t GraphWriter::cell_of(std::size_t stage, BodyRange range, Part part) {
  const auto [found, added] = cells_.try_emplace({stage, range.begin, range.end, part}, 0);
  if (added) found->second = make_cell(chain_of_range(stage, range, part), part);
  return found->second;
}

std::uint32_t GraphWriter::make_cell(std::vector<ChainOp> chain, Part part) {
  for (std::size_t i = 0; i < graph_.chains.size(); ++i) {
    if (cell_spec_[i] && graph_.chains[i] == chain && cell_part_[i] == part) return *cell_spec_[i];
  }
  OpSpec spec;
  spec.kind = OpKind::cell;
  spec.name = name_of_part(part);
  spec.direction = direction_of(part);
  spec.format = format_of(work_.recipe.compute_format);
  spec.m = static_cast<std::int64_t>(graph_.chains.size());
  for (const auto& op : chain) spec.flops += graph_.specs[op.spec].flops;
  graph_.chains.push_back(std::move(chain));
  cell_part_.push_back(part);
  cell_spec_.emplace_back(add_spec(std::move(spec)));
  return *cell_spec_.back();
}

std::uint32_t GraphWriter::pair_of(std::size_t forward_stage, std::size_t backward_stage, Part backward) {
  const auto [found, added] = pairs_.try_emplace({forward_stage, backward_stage, backward}, 0);
  if (!added) return found->second;
  const auto cell = [&](std::size_t stage, Part part) {
    return graph_.specs[cell_of(stage, {0, work_.stages[stage].bodies.size()}, part)];
  };
  const auto f = cell(forward_stage, Part::forward), b = cell(backward_stage, backward);
  OpSpec spec = f;
  spec.name = "pair";
  spec.n = b.m + 1;
  spec.flops += b.flops;
  return found->second = find_or_add(spec);
}

OpId GraphWriter::begin_op(std::uint32_t spec, OpKey key, bool recompute) {
  graph_.spec.push_back(spec);
  graph_.key.push_back(key);
  graph_.recompute.push_back(recompute ? 1 : 0);
  return static_cast<OpId>(graph_.spec.size() - 1);
}

void GraphWriter::depend_on_lane(const Lane& l) {
  if (l.last) depend(*l.last);
  for (const auto on : l.joins) {
    if (!l.last || on != *l.last) depend(on);
  }
}

void GraphWriter::occupy(std::int32_t rank, Stream stream) {
  graph_.queues.push_back(static_cast<std::uint32_t>(rank * streams_per_rank) + static_cast<std::uint32_t>(stream));
}

void GraphWriter::end_op() {
  graph_.dependency_begin.push_back(static_cast<std::uint32_t>(graph_.dependencies.size()));
  graph_.queue_begin.push_back(static_cast<std::uint32_t>(graph_.queues.size()));
}

OpId GraphWriter::compute(std::int32_t r, std::uint32_t spec, OpKey key, bool recompute) {
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
OpId GraphWriter::chain_collective(const Members& members, const ChainOp& op, OpKey key) {
  const auto stream = stream_of(graph_.groups[static_cast<std::size_t>(graph_.specs[op.spec].group)]);
  const auto id = begin_op(op.spec, key, op.recompute);
  for (const auto r : members) {
    auto& l = lane(r);
    if (l.last) depend(*l.last);
    for (const auto on : l.joins) depend(on);
  }
  for (const auto r : members) occupy(r, stream);
  end_op();
  for (const auto r : members) {
    auto& l = lane(r);
    if (op.overlaps_next) {
      // The kernel that it runs beside waits for what came before, as it does.
      if (l.beside) l.joins.push_back(*l.beside);
      l.beside = id;
    } else {
      l.joins.assign(1, id);
      l.last = id;
    }
  }
  return id;
}

void GraphWriter::run_cell(const Work& work) {
  const auto spec = cell_of(work.model_stage, work.range, work.part);
  each_rank_of(work.p, [&](std::int32_t r) {
    const auto id = compute(r, spec,
                            {static_cast<std::uint16_t>(work.stage), static_cast<std::uint16_t>(work.range.begin),
                             phase_of(work.part), 0, work.micro_batch});
    live(r, work, id, id);
  });
}

void GraphWriter::run_ops(const Work& work) {
  const auto& bodies = work_.stages[work.model_stage].bodies;
  const bool forward = work.part == Part::forward;
  for (std::size_t i = work.range.begin; i < work.range.end; ++i) {
    const auto at = forward ? i : work.range.end - 1 - (i - work.range.begin);
    const auto before = static_cast<OpId>(graph_.size());
    std::uint16_t slot = 0;
    for (const auto& op : chain_of(bodies[at], work.part)) {
      const auto phase = op.recompute ? Phase::recompute : phase_of(work.part);
      run_op(work.p, op,
             {static_cast<std::uint16_t>(work.stage), static_cast<std::uint16_t>(at), phase, slot++, work.micro_batch});
    }
    // Memory of a body spans its operations; each rank's own first and last ones are found by their queue.
    auto body = work;
    body.range = {at, at + 1};
    if (before == graph_.size()) continue;
    each_rank_of(work.p, [&](std::int32_t r) {
      const auto [first, last] = own_span(r, before);
      live(r, body, first, last);
    });
  }
  join_beside(work.p);
}

// The next operation of each lane waits for everything so far.
void GraphWriter::join_beside(std::int64_t p) {
  each_rank_of(p, [&](std::int32_t r) {
    auto& l = lane(r);
    if (l.beside) l.joins.push_back(*l.beside), l.beside.reset();
  });
}

void GraphWriter::run_op(std::int64_t p, const ChainOp& op, OpKey key) {
  const auto group = graph_.specs[op.spec].group;
  if (group >= 0) {
    for (const auto& members : groups_of(p, shapes_[static_cast<std::size_t>(group)])) chain_collective(members, op, key);
  } else {
    each_rank_of(p, [&](std::int32_t r) { compute(r, op.spec, key, op.recompute); });
  }
}

void GraphWriter::run_pair_cell(const Work& forward, const Work& backward) {
  const auto spec = pair_of(forward.model_stage, backward.model_stage, backward.part);
  each_rank_of(forward.p, [&](std::int32_t r) {
    const auto id = compute(r, spec,
                            {static_cast<std::uint16_t>(backward.stage), 0, phase_of(backward.part), 0, backward.micro_batch});
    live_pair(r, forward, backward, id, id);
  });
}

std::vector<GraphWriter::PairOp> GraphWriter::pair_ops(const Work& work) {
  const auto& bodies = work_.stages[work.model_stage].bodies;
  std::vector<PairOp> out;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const auto at = work.part == Part::forward ? i : bodies.size() - 1 - i;
    std::uint16_t slot = 0;
    for (const auto& op : chain_of(bodies[at], work.part)) {
      const auto phase = op.recompute ? Phase::recompute : phase_of(work.part);
      out.push_back({op, {static_cast<std::uint16_t>(work.stage), static_cast<std::uint16_t>(at), phase, slot++,
                          work.micro_batch}});
    }
  }
  return out;
}

bool GraphWriter::hands_over(const ChainOp& op) const {
  const auto group = graph_.specs[op.spec].group;
  return group >= 0 && !op.overlaps_next && stream_of(graph_.groups[static_cast<std::size_t>(group)]) == Stream::expert;
}

void GraphWriter::run_pair_ops(const Work& forward, const Work& backward) {
  const auto f = pair_ops(forward), b = pair_ops(backward);
  const auto p = forward.p;
  const auto before = static_cast<OpId>(graph_.size());
  each_rank_of(p, [&](std::int32_t r) { second_lanes_[static_cast<std::size_t>(r)] = lanes_[static_cast<std::size_t>(r)]; });
  for (const auto& next : interleave(
           b.size(), [&](std::size_t i) { return hands_over(b[i].op); }, f.size(),
           [&](std::size_t i) { return hands_over(f[i].op); })) {
    second_ = next.is_forward;
    const auto& [op, key] = next.is_forward ? f[next.index] : b[next.index];
    run_op(p, op, key);
  }
  second_ = false;
  each_rank_of(p, [&](std::int32_t r) {
    auto& mine = lanes_[static_cast<std::size_t>(r)];
    const auto& other = second_lanes_[static_cast<std::size_t>(r)];
    if (mine.beside) mine.joins.push_back(*mine.beside), mine.beside.reset();
    if (other.last) mine.joins.push_back(*other.last);
    for (const auto on : other.joins) mine.joins.push_back(on);
    if (other.beside) mine.joins.push_back(*other.beside);
    const auto [first, last] = own_span(r, before);
    live_pair(r, forward, backward, first, last);
  });
}

std::pair<OpId, OpId> GraphWriter::own_span(std::int32_t r, OpId from) const {
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

// A body's saved tensors live from its forward to its backward operations; what lives inside a cell only is one more tensor.
void GraphWriter::live(std::int32_t r, const Work& work, OpId first, OpId last) {
  const auto& bodies = work_.stages[work.model_stage].bodies;
  CellMemory cell;
  for (auto i = work.range.begin; i < work.range.end; ++i) cell.add(memory_[bodies[i]]);
  std::int64_t transient = 0;
  if (work.part == Part::forward) transient = cell.forward_peak - cell.saved();
  if (work.part == Part::backward) transient = cell.backward_peak - cell.saved();
  if (work.part == Part::input_gradient) transient = cell.input_peak - cell.saved() - cell.held;
  if (transient > 0) graph_.tensors.push_back({first, last, r, MemoryTerm::activations, transient});
  saved_of_bodies(r, work, first, last);
}

// Of a pair both are there from start to end: a tensor before them makes good what is freed meanwhile, and has what is
// short-lived.
void GraphWriter::live_pair(std::int32_t r, const Work& forward, const Work& backward, OpId first, OpId last) {
  if (backward.part != Part::backward) {
    live(r, forward, first, last);
    live(r, backward, first, last);
    return;
  }
  const auto bodies_of = [&](const Work& work) {
    std::vector<const BodyMemory*> bodies;
    const auto& of_stage = work_.stages[work.model_stage].bodies;
    for (auto i = work.range.begin; i < work.range.end; ++i) bodies.push_back(&memory_[of_stage[i]]);
    return bodies;
  };
  const auto left = bodies_of(forward);
  auto beside = pair_peak(left, bodies_of(backward));
  for (const auto* body : left) beside -= body->saved();
  if (beside != 0) graph_.tensors.push_back({first, last, r, MemoryTerm::activations, beside});
  saved_of_bodies(r, forward, first, last);
  saved_of_bodies(r, backward, first, last);
}

void GraphWriter::saved_of_bodies(std::int32_t r, const Work& work, OpId first, OpId last) {
  if (work.shares_tensors) return saved(r, work, first, last);
  auto body = work;
  for (auto i = work.range.begin; i < work.range.end; ++i) {
    body.range = {i, i + 1};
    saved(r, body, first, last);
  }
}

// Where the backward is split, what W needs is a tensor of its own, and what I makes for it another.
void GraphWriter::saved(std::int32_t r, const Work& work, OpId first, OpId last) {
  BodyMemory sum;
  for (auto i = work.range.begin; i < work.range.end; ++i) {
    const auto& body = memory_[work_.stages[work.model_stage].bodies[i]];
    sum.activations += body.activations, sum.logits += body.logits;
    sum.weight_inputs += body.weight_inputs, sum.held += body.held;
  }
  if (!splits_backward_) sum.weight_inputs = sum.held = 0;
  const auto slot =
      (((static_cast<std::uint64_t>(r) << 12 | work.stage) << 12 | work.range.begin) << 24) | work.micro_batch;
  const auto begin = [&](std::int64_t bytes, MemoryTerm term) {
    if (bytes > 0) graph_.tensors.push_back({first, last, r, term, bytes});
  };
  if (work.part == Part::forward) {
    open_[slot] = graph_.tensors.size();
    begin(sum.weight_inputs, MemoryTerm::activations);
    begin(sum.activations - sum.weight_inputs, MemoryTerm::activations);
    begin(sum.logits, MemoryTerm::logits);
    return;
  }
  const auto found = open_.find(slot);
  CORE_ASSERT(found != open_.end());
  auto index = found->second;
  const auto end = [&](std::int64_t bytes, bool now) {
    if (bytes > 0 && now) graph_.tensors[index].last = last;
    index += bytes > 0 ? 1 : 0;
  };
  if (work.part == Part::weight_gradient) {
    // What I made stands where the other tensors' index was left.
    end(sum.held, true);
    if (sum.weight_inputs > 0) graph_.tensors[weight_inputs_[slot]].last = last;
    weight_inputs_.erase(slot);
    open_.erase(found);
    return;
  }
  const auto weight_inputs = index;
  end(sum.weight_inputs, work.part == Part::backward);
  end(sum.activations - sum.weight_inputs, true);
  end(sum.logits, true);
  if (work.part == Part::backward) {
    open_.erase(found);
    return;
  }
  weight_inputs_[slot] = weight_inputs;
  found->second = graph_.tensors.size();
  begin(sum.held, MemoryTerm::activations);
}

}  // namespace core

#include "core/graph/graph_writer.h"

#include "core/error.h"

namespace core {

GraphWriter::GraphWriter(const StepWork& work, Fold fold)
    : work_(work), tp_(fold == Fold::yes ? 1 : work.plan.tp), dp_(fold == Fold::yes ? 1 : work.plan.dp), fold_(fold) {
  const auto& plan = work.plan;
  graph_.ranks = static_cast<std::int32_t>(plan.pp * dp_ * tp_);
  graph_.multiplicity.assign(static_cast<std::size_t>(graph_.ranks), fold == Fold::yes ? plan.tp * plan.dp : 1);
  lanes_.resize(static_cast<std::size_t>(graph_.ranks));
  body_chains_.resize(work.bodies.size() * 2);
  tensor_group_ = add_group({"tp", 0, 1, plan.tp});
  data_group_ = add_group({"dp", 0, plan.tp, plan.dp});
  world_group_ = add_group({"world", 0, 1, plan.gpus()});
  for (std::int64_t p = 0; p < plan.pp; ++p) {
    const auto m = resident_memory(rank_parameters(work, p), plan, work.recipe, work.framework);
    each_rank_of(p, [&](std::int32_t) { graph_.resident.emplace_back(m.begin(), m.end()); });
  }
  for (const auto& body : work.bodies) memory_.push_back(body_memory(body, work.framework));
}

std::vector<GraphWriter::Members> GraphWriter::tensor_groups(std::int64_t p) const {
  std::vector<Members> groups(static_cast<std::size_t>(dp_));
  for (std::int64_t d = 0; d < dp_; ++d) {
    for (std::int64_t t = 0; t < tp_; ++t) groups[static_cast<std::size_t>(d)].push_back(rank(p, d, t));
  }
  return groups;
}

std::vector<GraphWriter::Members> GraphWriter::data_groups(std::int64_t p) const {
  std::vector<Members> groups(static_cast<std::size_t>(tp_));
  for (std::int64_t t = 0; t < tp_; ++t) {
    for (std::int64_t d = 0; d < dp_; ++d) groups[static_cast<std::size_t>(t)].push_back(rank(p, d, t));
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
  return static_cast<std::int16_t>(graph_.groups.size() - 1);
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

// Specs of a body's operations, bound to the plan's groups; one set a body and direction.
const std::vector<ChainOp>& GraphWriter::chain_of(std::uint16_t body, Direction direction) {
  auto& chain = body_chains_[static_cast<std::size_t>(body) * 2 + (direction == Direction::backward ? 1 : 0)];
  if (!chain.empty()) return chain;
  const auto& b = work_.bodies[body];
  for (const auto& op : direction == Direction::forward ? b.forward : b.backward) {
    auto spec = op.spec;
    if (op.scope == Scope::tensor) spec.group = tensor_group_;
    chain.push_back({find_or_add(spec), op.recompute, op.overlaps_next});
  }
  if (work_.framework.host_per_kernel.value > 0.0) chain.push_back(host_wait(chain, direction));
  return chain;
}

// The GPU cannot be faster than the host that launches its kernels: what a body lacks to that is one more operation.
ChainOp GraphWriter::host_wait(const std::vector<ChainOp>& chain, Direction direction) {
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

std::uint32_t GraphWriter::cell_of(std::size_t stage, BodyRange range, Direction direction) {
  auto& known = cells_[{stage, range.begin, range.end, direction}];
  if (!known) known = make_cell(stage, range, direction);
  return *known;
}

std::uint32_t GraphWriter::make_cell(std::size_t stage, BodyRange range, Direction direction) {
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
  const auto id = begin_op(op.spec, key, op.recompute);
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
    if (op.overlaps_next) {
      if (l.beside) l.joins.push_back(*l.beside);
      l.beside = id;
    } else {
      l.joins.push_back(id);
      l.last = id;
    }
  }
  return id;
}

void GraphWriter::run_cell(const Work& work) {
  const auto spec = cell_of(work.stage, work.range, work.direction);
  const auto phase = work.direction == Direction::forward ? Phase::forward : Phase::backward;
  each_rank_of(work.p, [&](std::int32_t r) {
    const auto id = compute(r, spec,
                            {static_cast<std::uint16_t>(work.stage), static_cast<std::uint16_t>(work.range.begin), phase,
                             0, work.micro_batch});
    live(r, work, id, id);
  });
}

void GraphWriter::run_ops(const Work& work) {
  const auto& bodies = work_.stages[work.stage].bodies;
  const bool forward = work.direction == Direction::forward;
  for (std::size_t i = work.range.begin; i < work.range.end; ++i) {
    const auto at = forward ? i : work.range.end - 1 - (i - work.range.begin);
    const auto before = static_cast<OpId>(graph_.size());
    std::uint16_t slot = 0;
    for (const auto& op : chain_of(bodies[at], work.direction)) {
      const auto phase = op.recompute ? Phase::recompute : forward ? Phase::forward : Phase::backward;
      run_op(work.p, op,
             {static_cast<std::uint16_t>(work.stage), static_cast<std::uint16_t>(at), phase, slot++, work.micro_batch});
    }
    // Memory of a body spans its operations; each rank's own first and last ones are found by their queue.
    auto body = work;
    body.range = {at, at + 1};
    each_rank_of(work.p, [&](std::int32_t r) {
      const auto [first, last] = own_span(r, before);
      live(r, body, first, last);
    });
  }
  // The next operation of each lane waits for everything so far.
  each_rank_of(work.p, [&](std::int32_t r) {
    auto& l = lane(r);
    if (l.beside) l.joins.push_back(*l.beside), l.beside.reset();
  });
}

void GraphWriter::run_op(std::int64_t p, const ChainOp& op, OpKey key) {
  if (graph_.specs[op.spec].group >= 0) {
    for (const auto& members : tensor_groups(p)) chain_collective(members, op, key);
  } else {
    each_rank_of(p, [&](std::int32_t r) { compute(r, op.spec, key, op.recompute); });
  }
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
  const auto& bodies = work_.stages[work.stage].bodies;
  CellMemory cell;
  for (auto i = work.range.begin; i < work.range.end; ++i) cell.add(memory_[bodies[i]]);
  const auto transient =
      (work.direction == Direction::forward ? cell.forward_peak : cell.backward_peak) - cell.saved();
  if (transient > 0) graph_.tensors.push_back({first, last, r, MemoryTerm::activations, transient});
  if (work.shares_tensors) return saved(r, work, first, last);
  auto body = work;
  for (auto i = work.range.begin; i < work.range.end; ++i) {
    body.range = {i, i + 1};
    saved(r, body, first, last);
  }
}

void GraphWriter::saved(std::int32_t r, const Work& work, OpId first, OpId last) {
  std::int64_t activations = 0, logits = 0;
  for (auto i = work.range.begin; i < work.range.end; ++i) {
    const auto& body = memory_[work_.stages[work.stage].bodies[i]];
    activations += body.activations, logits += body.logits;
  }
  const auto slot =
      (((static_cast<std::uint64_t>(r) << 12 | work.stage) << 12 | work.range.begin) << 24) | work.micro_batch;
  if (work.direction == Direction::forward) {
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

}  // namespace core

#include "core/graph/step_work.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/error.h"
#include "core/model/block_kind.h"

namespace core {

namespace {

bool is_table(const Block& block, const Tensor& tensor) {
  return (block.kind == "embedding" || block.kind == "output") && tensor.split == Tensor::Split::rows;
}

// Elements of a parameter tensor on one rank.
double elements_of(const Block& block, const Tensor& tensor, const BodyContext& context) {
  const double whole = static_cast<double>(tensor.numel()), tp = static_cast<double>(context.tp);
  if (is_table(block, tensor)) {
    return static_cast<double>(padded_vocab(tensor.rows, context) / context.tp * tensor.columns);
  }
  if (tensor.experts > 0) {
    const bool divided = tensor.split != Tensor::Split::none;
    return whole / static_cast<double>(context.ep * (divided ? context.etp : 1));
  }
  switch (tensor.split) {
    case Tensor::Split::none: return whole;
    case Tensor::Split::kv_heads: {
      // Key-value heads fewer than ranks are held by each rank that shares one.
      const double heads = static_cast<double>(block.shape.at("kv_heads"));
      return whole * std::max(1.0 / heads, 1.0 / tp);
    }
    case Tensor::Split::columns:
    case Tensor::Split::rows:
    case Tensor::Split::heads: return whole / tp;
  }
  CORE_ASSERT(false);
}

bool is_gemm_weight(const Block& block, const Tensor& tensor) {
  return tensor.columns > 1 && block.kind != "embedding" && block.kind != "output" && block.kind != "norm";
}

// The matrices of a tensor on a rank, or the part of each that the rank has: how many, their elements, and FLOPs of a
// Newton-Schulz step over one.
struct Matrices {
  double count = 0.0, elements = 0.0, newton_schulz = 0.0;
};
Matrices matrices_of(const Tensor& tensor, double elements) {
  const double rows = static_cast<double>(tensor.rows), columns = static_cast<double>(tensor.columns);
  const double matrices = static_cast<double>(std::max<std::int64_t>(1, tensor.experts));
  const double share = elements / (matrices * rows * columns);
  // Experts are whole or divided as the others; a rank has fewer of them.
  if (tensor.experts > 0) return {matrices * share, rows * columns, newton_schulz_flops(rows, columns)};
  const bool by_rows = tensor.split == Tensor::Split::rows;
  return {1.0, elements, newton_schulz_flops(by_rows ? rows * share : rows, by_rows ? columns : columns * share)};
}

// Elements of the output layer's weight on a rank, whether it is a table of its own or the embedding's.
double output_weight(const Block& block, const ModelSpec& model, const BodyContext& context) {
  if (block.kind != "output") return 0.0;
  return static_cast<double>(padded_vocab(block.shape.at("vocab"), context) / context.tp * block.shape.get("dim", model.hidden));
}

void add_parameters(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  body.output_weight = output_weight(block, model, context);
  for (const auto& tensor : block_kind(block.kind).tensors(block, model)) {
    const double n = elements_of(block, tensor, context);
    const bool routed = tensor.experts > 0;
    (routed ? body.expert_parameters : body.parameters) += n;
    if (!is_gemm_weight(block, tensor)) continue;
    const auto m = matrices_of(tensor, n);
    body.newton_schulz += m.count * m.newton_schulz;
    (routed ? body.matrix_squares.experts : body.matrix_squares.dense) += m.count * m.elements * m.elements;
    (routed ? body.newton_schulz_elements.experts : body.newton_schulz_elements.dense) +=
        m.count * m.newton_schulz * m.elements;
    body.layer_weights += routed ? n / std::max(1.0, static_cast<double>(tensor.experts / context.ep)) : n;
    if (!context.high_precision) (routed ? body.expert_gemm_parameters : body.gemm_parameters) += n;
  }
}

void append(std::vector<BodyOp>& to, const std::vector<BodyOp>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// While a block runs forward nothing of the ones after it is saved yet; backward it is gone, but for what W needs of it.
void merge_transients(Body& body, const Body& block) {
  Bytes saved{0.0}, kept_for_weights{0.0};
  for (const auto& s : block.saved) {
    saved += s.bytes;
    if (s.for_weights) kept_for_weights += s.bytes;
  }
  const Bytes gone = std::max(Bytes{0.0}, saved - kept_for_weights - block.held_gradients);
  body.forward_transient = std::max(block.forward_transient, body.forward_transient - saved);
  body.backward_transient = std::max(block.backward_transient, body.backward_transient - saved);
  body.input_transient = std::max(block.backward_transient + kept_for_weights, body.input_transient - gone);
}

// Backward runs the blocks in reverse.
void merge(Body& body, Body&& block) {
  merge_transients(body, block);
  append(body.forward, block.forward);
  append(block.backward, body.backward);
  body.backward = std::move(block.backward);
  body.saved.insert(body.saved.end(), block.saved.begin(), block.saved.end());
  body.gather_buffer = std::max(body.gather_buffer, block.gather_buffer);
  body.output_operands = std::max(body.output_operands, block.output_operands);
  body.parameters += block.parameters;
  body.gemm_parameters += block.gemm_parameters;
  body.expert_parameters += block.expert_parameters;
  body.expert_gemm_parameters += block.expert_gemm_parameters;
  body.held_gradients += block.held_gradients;
  body.newton_schulz += block.newton_schulz;
  body.matrix_squares += block.matrix_squares;
  body.newton_schulz_elements += block.newton_schulz_elements;
  body.layer_weights += block.layer_weights;
  body.output_weight += block.output_weight;
}

BodyOp unit_copy(std::string_view name, Direction direction, double bytes, const BodyContext& context) {
  BodyOp op;
  op.spec.kind = OpKind::memory_bound;
  op.spec.name = name;
  op.spec.format = format_of(context.recipe->compute_format);
  op.spec.direction = direction;
  op.spec.bytes = Bytes{bytes};
  return op;
}

// Parameters that are sharded are copied after each gather, gradients before each reduction; where gradients travel in another
// format one more pass casts them.
void add_unit_copies(const BodyContext& context, Body& body) {
  const auto& copies = context.unit_copies;
  const Recipe& recipe = *context.recipe;
  if (!context.sharded_units || body.all_parameters() <= 0.0) return;
  // With replicated parameters (ZeRO-2) too: a micro-batch gathers what the one before it freed.
  if (const double bytes = 2.0 * copies.gathers * recipe.parameter_gather_bytes * body.all_parameters(); bytes > 0.0) {
    body.forward.insert(body.forward.begin(), unit_copy("unit_gather_copies", Direction::forward, bytes, context));
    body.forward.front().once = true;  // the backward gathers for its recompute too
    body.backward.insert(body.backward.begin(), unit_copy("unit_gather_copies", Direction::backward, bytes, context));
  }
  const double made = recipe.weight_bytes, sent = recipe.gradient_reduce_bytes;
  const double cast = made == sent || !copies.any() ? 0.0 : made + sent;
  const double each = 2.0 * copies.gradients * made + cast + 2.0 * copies.scalings * sent;
  if (each <= 0.0) return;
  body.backward.push_back(unit_copy("gradient_copies", Direction::backward, each * body.all_parameters(), context));
  body.backward.back().weight_gradient = true;
}

Body lower_blocks(const std::vector<Block>& blocks,
                  const ModelSpec& model,
                  const BodyContext& context,
                  bool parallel_residual) {
  const auto norms = std::count_if(blocks.begin(), blocks.end(), [](const Block& b) { return b.kind == "norm"; });
  Body body;
  std::uint16_t place = 0;
  for (const auto& block : blocks) {
    BodyContext own = context;
    // Attention and mlp in parallel are summed before one reduction; with one norm they also share the gathered input.
    if (parallel_residual && block.kind == "attention") own.reduces_output = false;
    if (parallel_residual && block.kind == "mlp") own.gathers_input = norms > 1;
    Body one;
    block_kind(block.kind).lower(block, model, own, one);
    add_parameters(block, model, context, one);
    for (auto* ops : {&one.forward, &one.backward}) {
      for (auto& op : *ops) op.block = place;
    }
    ++place;
    merge(body, std::move(one));
  }
  add_unit_copies(context, body);
  body.stops_early = context.recompute_stops_early;
  body.input = Bytes{context.recipe->activation_bytes * context.tokens_between_blocks() *
                     static_cast<double>(model.hidden)};
  // With sequence parallel it is divided as it is.
  body.checkpoint = context.divides_checkpoints && !context.sp ? body.input / static_cast<double>(context.tp) : body.input;
  return body;
}

bool is_sum(const BodyOp& op) {
  return op.spec.kind == OpKind::memory_bound && (op.spec.name == "residual" || op.spec.name == "dropout");
}

// What a layer's own last GEMM and the sum after it make is the next layer's input, which no backward of this layer needs.
void leave_out_end(std::vector<BodyOp>& forward) {
  auto end = forward.size();
  while (end > 0 && (is_sum(forward[end - 1]) || (forward[end - 1].scope == Scope::tensor && !forward[end - 1].overlaps_next))) --end;
  if (end > 0 && forward[end - 1].spec.kind == OpKind::gemm && !forward[end - 1].spec.grouped) forward.resize(end - 1);
}

Body recompute_all(const Body& body) {
  Body out = body;
  std::vector<BodyOp> backward = body.forward;
  if (body.stops_early) leave_out_end(backward);
  std::erase_if(backward, [](const BodyOp& op) { return op.once; });
  for (auto& op : backward) op.recompute = true;
  append(backward, body.backward);
  out.backward = std::move(backward);
  for (const auto& s : body.saved) {
    out.backward_transient += s.bytes;
    out.input_transient += s.bytes;
    if (s.for_weights) out.held_inputs += s.bytes;
  }
  out.saved = {{"layer input", body.checkpoint, 0, false}};
  return out;
}

// Each block repeats what was dropped of it right before its own backward operations.
Body recompute_modules(const Body& body, Modules set) {
  Body out = body;
  out.backward.clear();
  std::optional<std::uint16_t> block;
  for (const auto& op : body.backward) {
    if (op.block != block) {
      block = op.block;
      for (auto repeated : body.forward) {
        if (repeated.block != *block || (repeated.repeated_by & set) == 0) continue;
        repeated.recompute = true;
        out.backward.push_back(std::move(repeated));
      }
    }
    out.backward.push_back(op);
  }
  for (const auto& s : body.saved) {
    if ((s.dropped_by & set) == 0) continue;
    out.backward_transient += s.bytes;
    out.input_transient += s.bytes;
    if (s.for_weights) out.held_inputs += s.bytes;
  }
  std::erase_if(out.saved, [&](const SavedTensor& s) { return (s.dropped_by & set) != 0; });
  return out;
}

// Collects distinct bodies as stages ask for them.
class Bodies {
 public:
  explicit Bodies(StepWork& work) : work_(work) {}
  std::uint16_t index(const std::string& name, const Body& body) {
    for (std::size_t i = 0; i < work_.body_names.size(); ++i) {
      if (work_.body_names[i] == name) return static_cast<std::uint16_t>(i);
    }
    work_.body_names.push_back(name);
    work_.bodies.push_back(body);
    return static_cast<std::uint16_t>(work_.bodies.size() - 1);
  }
  std::uint16_t layer(const ModelSpec& model, const ModelBodies& bodies, std::size_t layer, Recompute recompute) {
    const auto kind = model.layer_kind[layer];
    const bool high = work_.recipe.keeps_high(static_cast<std::int64_t>(layer), model.layers());
    const auto name = model.kinds[kind].name + std::to_string(kind) + (high ? "/high/" : "/") +
                      std::string(name_of(recompute));
    for (std::size_t i = 0; i < work_.body_names.size(); ++i) {
      if (work_.body_names[i] == name) return static_cast<std::uint16_t>(i);
    }
    return index(name, layer_body((high ? bodies.high_kinds : bodies.kinds)[kind], recompute, work_.plan));
  }

 private:
  StepWork& work_;
};

// Layers of a recursive model run `loops` times: their weights count once.
void run_again(StepWork& work, std::size_t stage, std::int64_t loops) {
  if (loops == 1) return;
  auto& bodies = work.stages[stage].bodies;
  const auto first = std::find_if(bodies.begin(), bodies.end(), [&](std::uint16_t b) { return work.body_names[b] != "embedding"; });
  const std::vector<std::uint16_t> layers(first, bodies.end());
  for (std::int64_t loop = 1; loop < loops; ++loop) {
    for (const auto layer : layers) {
      auto again = work.bodies[layer];
      again.parameters = again.gemm_parameters = again.expert_parameters = again.expert_gemm_parameters = 0.0;
      again.newton_schulz = 0.0, again.matrix_squares = again.newton_schulz_elements = {};
      bodies.push_back(Bodies(work).index(work.body_names[layer] + "/again", again));
    }
  }
}

}  // namespace

// A V brings the last stage back to the first rank, and both ways each end has the first and the last. Modules of multi-token
// prediction look the next token up beside the output layer (DeepSeek-V3, arXiv 2412.19437, section 2.2: the embedding is
// shared with the main model), so that an untied model has a copy too.
bool tied_copy(const ModelSpec& model, const ParallelPlan& plan, Placement placement) {
  return (model.tied_embeddings || !model.mtp.empty()) && plan.pp > 1 && placement == Placement::loop;
}

std::int64_t padded_vocab(std::int64_t vocab, const BodyContext& context) {
  const auto multiple = context.vocab_multiple * context.tp;
  return (vocab + multiple - 1) / multiple * multiple;
}

BodyContext body_context(const ParallelPlan& plan,
                         const Recipe& recipe,
                         const Framework& framework,
                         const ModelSpec& model,
                         std::int64_t seq,
                         AttentionKernel attention) {
  BodyContext c;
  c.tp = plan.tp;
  c.sp = plan.sp && plan.tp > 1;
  c.cp = plan.cp;
  c.cp_kind = plan.cp_kind;
  c.cp_balanced = plan.cp_balanced;
  c.ep = plan.ep;
  c.etp = plan.etp;
  c.dispatch = plan.dispatch;
  c.graphs = plan.graphs;
  c.overlap_tensor = plan.overlap_tensor && c.sp;
  c.tensor_parts = framework.tensor_parts;
  c.overlap_experts = plan.overlap_experts;
  c.micro_batch = plan.micro_batch;
  c.seq = seq;
  c.attention = attention;
  c.recipe = &recipe;
  c.gathered_weights = StateTraffic(plan, recipe).gathers_units();
  c.sharded_units = plan.zero >= 2;
  c.dropout_hidden = model.hidden_dropout > 0.0;
  c.dropout_attention = model.attention_dropout > 0.0;
  c.loss = plan.loss;
  c.logits = framework.loss(plan.loss);
  c.linear_loss = framework.linear_loss;
  c.loss_chunk_tokens = framework.loss_chunk_tokens;
  c.divides_checkpoints = framework.divides_checkpoints;
  c.keeps_output_gather = framework.keeps_output_gather;
  c.norm_traffic = framework.norm_traffic;
  c.activation_traffic = framework.activation_traffic;
  c.rope_traffic = framework.rope_traffic;
  c.attention_traffic = framework.attention_traffic;
  c.sums_gradients_apart = framework.sums_gradients_apart;
  c.unit_copies = framework.unit_copies;
  c.expert_biases = framework.expert_biases;
  c.recompute_stops_early = framework.recompute_stops_early;
  c.vocab_multiple = framework.vocab_multiple;
  return c;
}

ModelBodies bodies_of(const ModelSpec& model, const BodyContext& context) {
  ModelBodies out;
  for (const auto& kind : model.kinds) {
    out.kinds.push_back(lower_blocks(kind.blocks, model, context, kind.parallel_residual));
  }
  if (context.recipe->high_first + context.recipe->high_last > 0) {
    const Recipe kept = context.recipe->kept_high();
    auto high = context;
    high.recipe = &kept;
    high.high_precision = true;
    for (const auto& kind : model.kinds) {
      out.high_kinds.push_back(lower_blocks(kind.blocks, model, high, kind.parallel_residual));
    }
  }
  for (const auto& module : model.mtp) {
    out.mtp.push_back(lower_blocks(module.blocks, model, context, module.parallel_residual));
  }
  out.embedding = lower_blocks(model.embedding, model, context, false);
  out.output = lower_blocks(model.output, model, context, false);
  out.output_table = out.output.output_weight;
  return out;
}

Body with_recompute(const Body& body, Recompute recompute, Modules set) {
  switch (recompute) {
    case Recompute::none: return body;
    case Recompute::selective:
    case Recompute::modules: return recompute_modules(body, set);
    case Recompute::full: return recompute_all(body);
  }
  CORE_ASSERT(false);
}

Body layer_body(const Body& body, Recompute recompute, const ParallelPlan& plan) {
  auto out = with_recompute(body, recompute, plan.modules_of(recompute));
  if (!plan.offload.activations) return out;
  for (const auto& s : out.saved) {
    out.offloaded += s.bytes;
    if (s.for_weights) out.held_inputs += s.bytes;
  }
  out.saved.clear();
  out.forward_transient += 2.0 * out.offloaded;
  out.backward_transient += 2.0 * out.offloaded;
  out.input_transient += 2.0 * out.offloaded;
  return out;
}

StateElements StepWork::parameters_of(std::size_t stage, BodyRange range) const {
  StateElements sum;
  for (auto i = range.begin; i < range.end; ++i) sum += bodies[stages[stage].bodies[i]].elements();
  return sum;
}

StateElements StepWork::parameters_of_stage(std::size_t stage) const {
  return parameters_of(stage, {0, stages[stage].bodies.size()});
}

StateElements StepWork::parameters_of_rank(std::int64_t pipeline_rank) const {
  StateElements sum;
  for (const auto s : stages_of_rank(pipeline_rank)) sum += parameters_of_stage(static_cast<std::size_t>(s));
  return sum;
}

StepWork step_work(const ModelSpec& model,
                   const ParallelPlan& plan,
                   const Recipe& recipe,
                   const Framework& framework,
                   std::int64_t seq,
                   AttentionKernel attention) {
  const auto context = body_context(plan, recipe, framework, model, seq, attention);
  return step_work(model, bodies_of(model, context), plan, recipe, framework, seq);
}

StepWork step_work(const ModelSpec& model,
                   const ModelBodies& bodies,
                   const ParallelPlan& plan,
                   const Recipe& recipe,
                   const Framework& framework,
                   std::int64_t seq) {
  StepWork work;
  work.plan = plan;
  work.recipe = recipe;
  work.framework = framework;
  work.framework.host_per_launch = framework.host(plan.graphs);
  work.model = model.name;
  work.hidden = model.hidden;
  work.seq = seq;
  work.placement = find_schedule(plan.schedule)->placement;
  work.tied_copy = tied_copy(model, plan, work.placement);
  const auto layers = layers_of_stages(plan, model.layers());
  work.stages.resize(static_cast<std::size_t>(plan.stages()));
  Bodies index(work);
  work.stages.front().bodies.push_back(index.index("embedding", bodies.embedding));
  std::size_t layer = 0;
  for (std::size_t s = 0; s < work.stages.size(); ++s) {
    work.stages[s].layers = layers[s];
    for (std::int64_t i = 0; i < layers[s]; ++i) {
      const auto recompute = plan.recompute_of_layer(i);
      work.stages[s].bodies.push_back(index.layer(model, bodies, layer++, recompute));
    }
    run_again(work, s, model.loops);
  }
  // Shared on one stage: the table is the embedding's. On two: the last holds a copy, of the size of the output layer's own,
  // kept equal by an all-reduce.
  Body output = bodies.output;
  if (work.tied_copy) {
    output.parameters += bodies.output_table;
    work.tied_parameters = bodies.output_table;
  }
  work.stages.back().bodies.push_back(index.index("output", output));
  for (std::size_t i = 0; i < bodies.mtp.size(); ++i) {
    const auto recompute = plan.recompute_after_output();
    work.stages.back().bodies.push_back(index.index("mtp" + std::to_string(i),
                                                    layer_body(bodies.mtp[i], recompute, plan)));
  }
  // A layer's input is what stages send.
  work.send_bytes = bodies.kinds.front().input.value;
  return work;
}

std::vector<BodyRange> buckets_of(const StepWork& work, std::size_t stage, bool overlapped) {
  const auto& bodies = work.stages[stage].bodies;
  if (!overlapped) return {{0, bodies.size()}};
  const double least = std::max(work.framework.bucket_parameters,
                                work.framework.bucket_parameters_per_rank * static_cast<double>(work.plan.replicas()));
  std::vector<BodyRange> out;
  double sum = 0.0;
  std::size_t end = bodies.size();
  for (std::size_t i = bodies.size(); i-- > 0;) {
    sum += work.bodies[bodies[i]].all_parameters();
    if (sum >= least || i == 0) {
      out.push_back({i, end});
      end = i;
      sum = 0.0;
    }
  }
  return out;
}

}  // namespace core

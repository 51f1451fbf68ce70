#include "core/graph/core_attention.h"

#include <algorithm>
#include <utility>

namespace core {

namespace {

// The products in few bits, where a recipe has them and a fused kernel computes them: not those of an indexer, nor over chosen keys.
const CoreAttentionRecipe* few_bits(const CoreAttention& a, const BodyContext& context) {
  const bool fused = context.attention != AttentionKernel::unfused;
  const auto& products = context.recipe->core_attention;
  return products && fused && a.top_k == 0 && a.sums_values ? &*products : nullptr;
}

// Keys that queries meet, as the kernel sees them: chunks become sequences of their own.
OpSpec kernel_of(const CoreAttention& a, const BodyContext& context, Direction direction) {
  const bool ulysses = context.cp > 1 && context.cp_kind == ContextParallel::ulysses;
  const auto heads = ulysses ? std::max<std::int64_t>(1, a.heads / context.cp) : a.heads;
  const auto kv_heads = ulysses ? std::max<std::int64_t>(1, a.kv_heads / context.cp) : a.kv_heads;
  OpSpec op;
  op.kind = OpKind::attention;
  op.name = direction == Direction::forward ? a.name : a.name + "_backward";
  op.direction = direction;
  const auto* products = few_bits(a, context);
  op.format = products == nullptr ? format_of(context.recipe->compute_format) : products->rate;
  op.kernel = context.attention;
  op.k = a.qk_dim;
  op.v_dim = a.v_dim == a.qk_dim ? 0 : a.v_dim;
  op.window = a.top_k > 0 ? a.top_k : a.window;
  op.sparse = a.top_k > 0;
  op.m = op.n = context.seq;
  auto sequences = context.micro_batch;
  if (a.chunk > 0 && a.chunk < context.seq) {
    sequences *= (context.seq + a.chunk - 1) / a.chunk;
    op.m = op.n = a.chunk;
  }
  if (context.cp > 1 && !ulysses) {
    op.m = std::max<std::int64_t>(1, op.n / context.cp);
    // An early and a late part together meet half of all keys on every rank; the last part alone meets the most.
    if (context.cp_balanced && op.kernel != AttentionKernel::unfused) {
      op.causal = false;
      op.n = std::max<std::int64_t>(1, op.n / 2);
    }
  }
  op.batch = sequences * heads;
  op.kv_batch = sequences * kv_heads;
  op.flops = attention_flops(op);
  const double passes = direction == Direction::forward ? 1.0 : 2.0;
  op.bytes = Bytes{passes * context.recipe->activation_bytes * context.tokens() *
                   (a.q_width() + a.kv_width() + a.out_width())};
  return op;
}

// Bytes of all keys and values of a micro-batch that a rank has to see: with a window, those of its neighbours only.
double exchanged(const CoreAttention& a, const BodyContext& context) {
  const double s = static_cast<double>(context.seq), own = s / static_cast<double>(context.cp);
  const double reach = static_cast<double>(a.chunk > 0 ? a.chunk : a.window);
  const double seen = reach > 0.0 ? std::min(s, own + reach) : s;
  return context.recipe->activation_bytes * static_cast<double>(context.micro_batch) * seen * a.kv_width();
}

void write_ring_at_once(BodyWriter& writer, const CoreAttention& a, const BodyContext& context, Direction direction) {
  const bool forward = direction == Direction::forward;
  writer.collective(Scope::context, OpKind::all_gather, forward ? "cp_ring_exchange" : "cp_ring_exchange_backward",
                    direction, (forward ? 1.0 : 2.0) * exchanged(a, context), true, modules::core_attention);
  writer.op(kernel_of(a, context, direction), modules::core_attention);
}

bool rings_in_steps(const CoreAttention& a, const BodyContext& context) {
  const auto limits = [&](std::int64_t keys) { return keys > 0 && keys < context.seq; };
  return context.cp > 1 && context.cp_kind == ContextParallel::ring && !limits(a.window) && !limits(a.chunk) &&
         a.top_k == 0 && context.attention != AttentionKernel::unfused;
}

// A ring in steps: sizes of one of them.
class RingStep {
 public:
  RingStep(const CoreAttention& a, const BodyContext& context, Direction direction)
      : a_(a), context_(context), direction_(direction) {}

  // Over the rank's own keys: causal, and so half of the square whether balanced or not.
  OpSpec own_kernel() const { return kernel(queries(), true); }
  // Over keys of another rank, all of which are earlier.
  OpSpec kernel_of_others() const { return kernel(keys_of_others(), false); }
  double exchanged_bytes() const { return (forward() ? 1.0 : 2.0) * activation_bytes() * tokens(queries()) * a_.kv_width(); }
  // Forward: the fp32 sum and the log-sum-exps of its rows are read and written, the partial ones read. Backward: the fp32
  // sum of the queries' gradients is read and written and the partial one read; gradients of keys and values that came with
  // them are read, a partial one is added, and the sum written.
  double merged_bytes() const {
    const double rows = tokens(queries()), sum = fp32 + fp32 + activation_bytes();
    if (forward()) return rows * (sum * a_.out_width() + 3.0 * fp32 * static_cast<double>(a_.heads));
    return rows * sum * a_.q_width() + 3.0 * activation_bytes() * tokens(keys_of_others()) * a_.kv_width();
  }

 private:
  static constexpr double fp32 = 4.0;
  bool forward() const { return direction_ == Direction::forward; }
  double activation_bytes() const { return context_.recipe->activation_bytes; }
  // Of a sequence.
  std::int64_t queries() const { return std::max<std::int64_t>(1, context_.seq / context_.cp); }
  std::int64_t keys_of_others() const {
    return context_.cp_balanced ? std::max<std::int64_t>(1, queries() / 2) : queries();
  }
  double tokens(std::int64_t of_a_sequence) const { return static_cast<double>(context_.micro_batch * of_a_sequence); }
  OpSpec kernel(std::int64_t keys, bool causal) const {
    auto op = kernel_of(a_, context_, direction_);
    op.m = queries(), op.n = keys;
    op.causal = causal;
    op.flops = attention_flops(op);
    op.bytes = Bytes{(forward() ? 1.0 : 2.0) * activation_bytes() *
                     (tokens(op.m) * (a_.q_width() + a_.out_width()) + tokens(op.n) * a_.kv_width())};
    return op;
  }

  const CoreAttention& a_;
  const BodyContext& context_;
  Direction direction_;
};

void write_ring(BodyWriter& writer, const CoreAttention& a, const BodyContext& context, Direction direction) {
  if (!rings_in_steps(a, context)) return write_ring_at_once(writer, a, context, direction);
  const bool forward = direction == Direction::forward;
  const RingStep step(a, context, direction);
  const auto exchange = [&] {
    writer.collective(Scope::context, OpKind::send_receive, forward ? "cp_ring_exchange" : "cp_ring_exchange_backward",
                      direction, step.exchanged_bytes(), true, modules::core_attention);
  };
  exchange();
  writer.op(step.own_kernel(), modules::core_attention);
  for (std::int64_t i = 1; i < context.cp; ++i) {
    if (i + 1 < context.cp) exchange();
    writer.op(step.kernel_of_others(), modules::core_attention);
    if (a.sums_values) {
      writer.memory_bound(forward ? "cp_ring_merge" : "cp_ring_merge_backward", direction, step.merged_bytes(),
                          modules::core_attention);
    }
  }
}

void write_all_gather(BodyWriter& writer, const CoreAttention& a, const BodyContext& context, Direction direction) {
  writer.collective(Scope::context, OpKind::all_gather, "cp_all_gather", direction, exchanged(a, context), false,
                    modules::core_attention);
  writer.op(kernel_of(a, context, direction), modules::core_attention);
  if (direction == Direction::backward) {
    writer.collective(Scope::context, OpKind::reduce_scatter, "cp_reduce_scatter", direction, exchanged(a, context));
  }
}

void write_ulysses(BodyWriter& writer, const CoreAttention& a, const BodyContext& context, Direction direction) {
  const double tokens = context.tokens() * context.recipe->activation_bytes;
  // Fewer key-value heads than ranks: each is sent to all ranks whose queries meet it.
  const double copies = std::max(1.0, static_cast<double>(context.cp) / static_cast<double>(a.kv_heads));
  const double inputs = tokens * (a.q_width() + copies * a.kv_width()), output = tokens * a.out_width();
  const bool forward = direction == Direction::forward;
  writer.collective(Scope::context, OpKind::all_to_all, "cp_all_to_all", direction, forward ? inputs : output);
  writer.op(kernel_of(a, context, direction), modules::core_attention);
  writer.collective(Scope::context, OpKind::all_to_all, "cp_all_to_all", direction, forward ? output : inputs);
}

}  // namespace

namespace {

// Queries, keys, values and output read and written once more for each copy; the backward fills its targets with zeros first.
void write_copies(BodyWriter& writer, const CoreAttention& a, const BodyContext& context, Direction direction) {
  if (context.attention_traffic <= 0.0 || context.attention == AttentionKernel::unfused) return;
  const double copied = context.tokens() * context.recipe->activation_bytes * (a.q_width() + a.kv_width() + a.out_width());
  const double passes = direction == Direction::forward ? 2.0 : 3.0;
  writer.memory_bound("attention_copies", direction, passes * context.attention_traffic * copied, modules::core_attention);
}

// The operands of products in few bits: queries, keys and values forward, which the backward reads too, and the gradient of the
// output. The rank's own tokens, whether or not others come to it: what travels is in 16 bits.
void write_casts(BodyWriter& writer, const CoreAttention& a, const BodyContext& context, Direction direction) {
  const auto* products = few_bits(a, context);
  if (products == nullptr) return;
  const bool forward = direction == Direction::forward;
  const double made = forward ? products->cast_bytes * (a.q_width() + a.kv_width())
                              : products->gradient_cast_bytes * a.out_width();
  writer.memory_bound(a.name + (forward ? "_cast" : "_gradient_cast"), direction, context.tokens() * made,
                      modules::core_attention);
}

}  // namespace

void write_core_attention(BodyWriter& writer, const CoreAttention& a, const BodyContext& context, Direction direction) {
  write_copies(writer, a, context, direction);
  write_casts(writer, a, context, direction);
  if (context.cp == 1) {
    writer.op(kernel_of(a, context, direction), modules::core_attention);
    return;
  }
  switch (context.cp_kind) {
    case ContextParallel::ring: return write_ring(writer, a, context, direction);
    case ContextParallel::all_gather: return write_all_gather(writer, a, context, direction);
    case ContextParallel::ulysses: return write_ulysses(writer, a, context, direction);
  }
}

void save_core_attention(BodyWriter& writer, const CoreAttention& a, const BodyContext& context) {
  const double rows = context.tokens() * static_cast<double>(a.heads);
  // Backward, attention needs its output as it was before it travelled, the projection as it is after.
  if (context.cp > 1 && context.cp_kind == ContextParallel::ulysses) {
    writer.save("attention output of all tokens", context.recipe->activation_bytes * context.tokens() * a.out_width(),
                modules::core_attention);
  }
  if (context.attention != AttentionKernel::unfused) {
    writer.save("log-sum-exp", 4.0 * rows, modules::core_attention);
    return;
  }
  const double scores = rows * static_cast<double>(context.seq), bytes = context.recipe->activation_bytes;
  writer.save("softmax", bytes * scores, modules::core_attention);
  if (context.dropout_attention) writer.save("attention dropout", (bytes + 1.0) * scores, modules::core_attention);
}

double unfused_scores(const CoreAttention& a, const BodyContext& context) {
  if (context.attention != AttentionKernel::unfused) return 0.0;
  return context.recipe->activation_bytes * context.tokens() * static_cast<double>(a.heads * context.seq);
}

double exchange_buffers(const CoreAttention& a, const BodyContext& context, Direction direction) {
  if (context.cp == 1 || context.cp_kind == ContextParallel::ulysses) return 0.0;
  const bool forward = direction == Direction::forward;
  const double with_gradients = forward ? 1.0 : 2.0;
  if (!rings_in_steps(a, context)) return with_gradients * exchanged(a, context);
  const double bytes = context.recipe->activation_bytes, passed = 2.0 * with_gradients * bytes * a.kv_width();
  const double summed = forward ? a.out_width() : a.q_width();
  return context.tokens() * (passed + (a.sums_values ? (4.0 + bytes) * summed : 0.0));
}

}  // namespace core

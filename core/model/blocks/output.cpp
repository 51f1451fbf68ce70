// Output layer and loss: logits [b s, V / tp] and vocabulary-parallel cross entropy (Megatron-LM, arXiv 1909.08053,
// section 3), which all-reduces maximum, sum and target logit.
//
//   unfused  keeps the logits in fp32 for backward (arXiv 2205.05198, section 4.3: 4 sbv)
//   fused    keeps them in 16 bits; the gradient takes their place
//   linear   goes through the tokens by chunks, so that only a chunk's logits are ever there. Their gradients are used at
//            once, in the forward pass, for those of the input [b s, h] and of the weight [h, V / tp], which are kept
//            (Liger, arXiv 2410.10989, section 3.2); or the logits are made again in the backward pass, from a log-sum-exp a
//            token. Chunks are as long as makes a chunk's logits as large as the input, rounded up to a power of two.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/graph/body_writer.h"
#include "core/model/block_kind.h"
#include "core/model/block_tensors.h"

namespace core::blocks {

namespace {

struct Output {
  double tokens, h, vocab;  // of this rank
  double whole;             // bytes of the activation [b, s, h]
  double logits;            // elements
  BodyWriter::Linear linear;
};

Output output_of(const Block& block, const ModelSpec& model, const BodyContext& context) {
  Output o{};
  const auto vocab = padded_vocab(block.shape.at("vocab"), context) / context.tp;
  o.tokens = context.tokens(), o.h = static_cast<double>(model.hidden), o.vocab = static_cast<double>(vocab);
  o.whole = context.recipe->activation_bytes * o.tokens * o.h;
  o.logits = o.tokens * o.vocab;
  o.linear = {"logits", o.tokens, model.hidden, vocab, true};
  return o;
}

void reduce_loss(BodyWriter& writer, Direction direction, double tokens) {
  for (const auto* part : {"loss_maximum", "loss_target", "loss_sum"}) {
    writer.tensor_collective(OpKind::all_reduce, part, direction, 4.0 * tokens);
  }
}

// The sum of the ranks' parts of the input's gradient.
void reduce_gradient(BodyWriter& writer, const BodyContext& context, double whole, bool overlaps_next) {
  if (context.sp) {
    writer.tensor_collective(OpKind::reduce_scatter, "tp_gradient_reduce_scatter", Direction::backward, whole, overlaps_next);
  } else {
    writer.tensor_collective(OpKind::all_reduce, "tp_gradient_all_reduce", Direction::backward, whole, overlaps_next);
  }
}

// Bytes of the gathered input while its GEMMs run; 0 where its memory is kept all through the step.
double gathered_input(const Output& o, const BodyContext& context, Body& body) {
  if (!context.sp) return 0.0;
  if (!context.keeps_output_gather) return o.whole;
  body.gather_buffer = Bytes{o.whole};
  return 0.0;
}

// Unfused and fused: all logits at once.
void lower_whole(const Output& o, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const LossFigures& loss = context.logits;
  enter_tensor_region(writer, context, o.whole);
  writer.linear_forward(o.linear);
  writer.memory_bound("loss", Direction::forward, loss.traffic_forward * o.logits);
  reduce_loss(writer, Direction::forward, o.tokens);
  writer.memory_bound("loss_backward", Direction::backward, loss.traffic_backward * o.logits);
  if (context.sp) {
    writer.tensor_collective(OpKind::all_gather, "tp_input_all_gather", Direction::backward, o.whole, true);
  }
  writer.linear_input_gradient(o.linear);
  reduce_gradient(writer, context, o.whole, true);
  writer.linear_weight_gradient(o.linear);

  const double input = context.recipe->activation_bytes * context.tokens_between_blocks() * o.h;
  writer.save_gemm_input("output input", input);
  writer.save("logits", loss.saved * o.logits);
  body.output_operands = Bytes{input + context.recipe->activation_bytes * o.logits};
  const double gathered = gathered_input(o, context, body);
  const double transient = loss.transient * o.logits;
  // The gradient of the logits in the activations' format has taken the place of what was kept when the input's is made.
  const double gradients = (context.recipe->activation_bytes - loss.saved) * o.logits + o.whole;
  body.forward_transient = Bytes{transient + gathered};
  body.backward_transient = Bytes{std::max(transient, gradients + gathered)};
}

// Tokens of a chunk: those given, or such that the logits of one are as large as the input.
std::int64_t chunk_of(const Output& o, const BodyContext& context) {
  const auto tokens = std::max<std::int64_t>(1, std::llround(o.tokens));
  if (context.loss_chunk_tokens) return std::min(*context.loss_chunk_tokens, tokens);
  const auto parts = static_cast<std::int64_t>(std::ceil(o.vocab / o.h));
  const auto least = static_cast<std::uint64_t>((tokens + parts - 1) / parts);
  return std::min(static_cast<std::int64_t>(std::bit_ceil(least)), tokens);
}

// Calls `write` for each chunk of tokens.
template <class Write>
void by_chunks(const Output& o, std::int64_t chunk, Write write) {
  const double size = static_cast<double>(chunk);
  for (double begin = 0.0; begin < o.tokens; begin += size) write(std::min(size, o.tokens - begin));
}

// Gradients in the forward pass. Their GEMMs are written as forward work of the same shapes.
void lower_gradients(const Output& o, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const Recipe& recipe = *context.recipe;
  const double a = recipe.activation_bytes, weight = o.h * o.vocab;
  const auto chunk = chunk_of(o, context);
  enter_tensor_region(writer, context, o.whole);
  by_chunks(o, chunk, [&](double tokens) {
    auto linear = o.linear;
    linear.tokens = tokens;
    writer.linear_forward(linear);
    reduce_loss(writer, Direction::forward, tokens);
    writer.memory_bound("loss", Direction::forward, context.logits.traffic_forward * tokens * o.vocab);
    writer.linear_gradients_in_forward(linear, a);
  });
  // The kept gradients are scaled by that of the loss and added to what they belong to.
  writer.memory_bound("loss_backward", Direction::backward, 2.0 * o.whole);
  writer.memory_bound("logits_weight_gradient_add", Direction::backward, (a + 2.0 * recipe.gradient_bytes) * weight);
  reduce_gradient(writer, context, o.whole, false);

  const double logits = context.logits.transient * static_cast<double>(chunk) * o.vocab;
  writer.save("output input gradient", o.whole);
  writer.save("output weight gradient", a * weight);
  body.forward_transient = Bytes{logits + gathered_input(o, context, body)};
}

// Logits again in the backward pass.
void lower_recompute(const Output& o, const BodyContext& context, Body& body) {
  BodyWriter writer(body, context);
  const auto chunk = chunk_of(o, context);
  enter_tensor_region(writer, context, o.whole);
  by_chunks(o, chunk, [&](double tokens) {
    auto linear = o.linear;
    linear.tokens = tokens;
    writer.linear_forward(linear);
    writer.memory_bound("loss", Direction::forward, context.logits.traffic_forward * tokens * o.vocab);
    reduce_loss(writer, Direction::forward, tokens);
  });
  if (context.sp) writer.tensor_collective(OpKind::all_gather, "tp_input_all_gather", Direction::backward, o.whole);
  by_chunks(o, chunk, [&](double tokens) {
    auto linear = o.linear;
    linear.tokens = tokens;
    writer.linear_forward_again(linear);
    writer.memory_bound("loss_backward", Direction::backward, context.logits.traffic_backward * tokens * o.vocab);
    writer.linear_input_gradient(linear);
    writer.linear_weight_gradient(linear);
  });
  reduce_gradient(writer, context, o.whole, false);
  // A chunk's gradients are gone when the next one comes: nothing is left for a weight pass of its own.
  for (auto& op : body.backward) op.weight_gradient = false;
  body.held_gradients = Bytes{0.0};

  const double logits = context.logits.transient * static_cast<double>(chunk) * o.vocab;
  writer.save_gemm_input("output input", context.recipe->activation_bytes * context.tokens_between_blocks() * o.h);
  writer.save("loss statistics", 4.0 * o.tokens);
  const double gathered = gathered_input(o, context, body);
  body.forward_transient = Bytes{logits + gathered};
  body.backward_transient = Bytes{logits + o.whole + gathered};
}

void lower(const Block& block, const ModelSpec& model, const BodyContext& context, Body& body) {
  const Output o = output_of(block, model, context);
  if (context.loss != Loss::linear) {
    lower_whole(o, context, body);
  } else if (context.linear_loss == LinearLoss::gradients) {
    lower_gradients(o, context, body);
  } else {
    lower_recompute(o, context, body);
  }
}

// The output layer is multiplied whether it has a table of its own or not.
double flops_per_token(const Block& block, const ModelSpec& model, const Span&) {
  const auto dim = block.shape.at("dim");
  const double projection = dim == model.hidden ? 0.0 : static_cast<double>(dim * model.hidden);
  return 2.0 * (projection + static_cast<double>(block.shape.at("vocab")) * static_cast<double>(dim));
}

}  // namespace

extern const BlockKind output;
const BlockKind output = {"output", output_tensors, lower, flops_per_token};

}  // namespace core::blocks

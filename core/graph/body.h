#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/framework.h"
#include "core/graph/op.h"
#include "core/plan/plan.h"
#include "core/recipe.h"

namespace core {

// Which communicator a body operation uses; lowering binds it to the groups of the plan.
enum class Scope : std::uint8_t { none, tensor, context, expert, expert_tensor };

// One operation of a body, with what it counts as in the breakdown.
struct BodyOp {
  OpSpec spec;
  Scope scope = Scope::none;
  bool recompute = false;        // forward work done again in the backward pass
  bool overlaps_next = false;    // a collective that runs beside the next operation and is joined after it
  bool once = false;             // of the forward pass alone: recompute does not repeat it
  bool weight_gradient = false;  // backward work that only the gradients of weights need: W of a split backward
  Modules repeated_by = 0;       // forward work that recompute of any of these modules repeats
  std::uint16_t block = 0;       // place of its block in the layer
};

// A tensor kept from forward for backward. Full recompute drops all of them.
struct SavedTensor {
  OpName name;
  Bytes bytes;
  Modules dropped_by = 0;    // recompute of any of these modules makes it unnecessary
  bool for_weights = false;  // the input of a GEMM: a split backward keeps it for W
};

// Elements of parameters: those of dense layers, and of routed experts.
struct StateElements {
  double dense = 0.0, experts = 0.0;
  StateElements& operator+=(const StateElements& o) {
    dense += o.dense, experts += o.experts;
    return *this;
  }
  double all() const { return dense + experts; }
};

// The work of one layer (or of the embedding, or of the output) for one micro-batch on one rank: forward
// and backward operations in issue order, all serial on the rank, and what forward leaves in memory.
struct Body {
  std::vector<BodyOp> forward, backward;
  std::vector<SavedTensor> saved;
  Bytes input;             // the layer's input, which stages send
  Bytes checkpoint;        // what full recompute keeps of it: the one tensor that it keeps
  // Peak of short-lived memory beyond all of `saved`, forward and backward; input_transient: of the I of a split backward,
  // which keeps the inputs of GEMMs.
  Bytes forward_transient, backward_transient, input_transient;
  Bytes gather_buffer;       // a gathered input whose memory the framework keeps all through the step
  Bytes output_operands;     // operands of the output layer's weight gradient: the input and the gradient of the logits
  Bytes held_gradients;      // gradients of GEMM outputs that a split backward keeps from I to W
  Bytes held_inputs;         // inputs of GEMMs that recompute makes anew, or offload brings back, in I and W needs
  bool stops_early = false;  // full recompute leaves out what follows the last tensor that the backward needs
  Bytes offloaded;           // copied to the host beside the forward operations, and back beside the backward ones
  double parameters = 0.0;      // elements on this rank, without the experts'
  double gemm_parameters = 0.0; // of those, elements of GEMM weights (the ones that fp8 copies)
  double expert_parameters = 0.0, expert_gemm_parameters = 0.0;  // of routed experts on this rank
  double newton_schulz = 0.0;   // FLOPs of one Newton-Schulz step over its GEMM weights, each tensor rank's part by itself
  // Sums over those matrices, of e elements and f FLOPs a step each: e^2 and f e.
  StateElements matrix_squares, newton_schulz_elements;
  // Elements on this rank of one weight of each GEMM: those of its layers, of experts one's; that of its output layer.
  double layer_weights = 0.0, output_weight = 0.0;

  double all_parameters() const { return parameters + expert_parameters; }
  StateElements elements() const { return {parameters, expert_parameters}; }
};

// How a rank sees a micro-batch.
struct BodyContext {
  std::int64_t tp = 1;
  bool sp = false;
  std::int64_t cp = 1;
  ContextParallel cp_kind = ContextParallel::ring;
  bool cp_balanced = true;       // each rank has an early and a late part of the sequence
  std::int64_t ep = 1, etp = 1;
  Dispatch dispatch = Dispatch::nccl;
  CudaGraphs graphs = CudaGraphs::none;  // of whole layers hold their experts' GEMMs, of parts of a layer do not
  bool overlap_tensor = false;   // tensor-parallel collectives in parts beside their GEMMs,
  TensorParts tensor_parts;      // in these
  bool overlap_experts = false;  // experts' all-to-alls run beside the shared experts
  double overload = 1.0;         // tokens on the fullest expert rank over the mean
  double capacity = 0.0;         // capacity factor: tokens an expert takes at most, over the mean; 0 = dropless
  std::int64_t micro_batch = 1;  // b
  std::int64_t seq = 1;          // s, of the whole sequence
  AttentionKernel attention = AttentionKernel::flash2;
  const Recipe* recipe = nullptr;
  bool high_precision = false;   // a layer that the recipe keeps high: `recipe` is Recipe::kept_high, weights need no copies
  bool sharded_units = false;    // gradients or parameters are sharded unit by unit (ZeRO-2 and 3, FSDP)
  bool gathered_weights = false; // parameters are sharded: weights are gathered, and cast, for each micro-batch
  Format gemm(Direction direction, bool weight) const;  // tensor cores of a layer GEMM
  bool dropout_hidden = false, dropout_attention = false;
  Loss loss = Loss::unfused;
  LossFigures logits;                   // of that loss (data/frameworks), bytes per logit
  LinearLoss linear_loss = LinearLoss::gradients;
  std::optional<std::int64_t> loss_chunk_tokens;
  bool divides_checkpoints = false;     // what full recompute keeps is divided over the tensor-parallel ranks
  bool keeps_output_gather = false;     // memory of the output layer's gathered input is kept (data/frameworks)
  // Memory traffic of elementwise kernels over that of one fused kernel (data/frameworks).
  double norm_traffic = 1.0, activation_traffic = 1.0, rope_traffic = 1.0, attention_traffic = 0.0;
  ExpertBiases expert_biases;           // (data/frameworks)
  UnitCopies unit_copies;               // of sharded parameters (data/frameworks)
  bool recompute_stops_early = false;   // full recompute ends with the last tensor that the backward needs (data/frameworks)
  bool sums_gradients_apart = false;    // a kernel of its own adds a weight's gradient to the sum (data/frameworks)
  std::int64_t vocab_multiple = 1;      // the vocabulary is padded to a multiple of this times tp
  bool gathers_input = true;            // false where a parallel residual shares the gathered input
  bool reduces_output = true;           // false where a parallel residual reduces once, after both

  // Tokens of a micro-batch on a context-parallel rank.
  double tokens() const { return static_cast<double>(micro_batch * seq) / static_cast<double>(cp); }
  // Tokens a rank holds between blocks: s / tp of each sequence with sequence parallel.
  double tokens_between_blocks() const { return tokens() / static_cast<double>(sp ? tp : 1); }
};

// The vocabulary padded as the framework does: to a multiple of vocab_multiple * tp.
std::int64_t padded_vocab(std::int64_t vocab, const BodyContext& context);

}  // namespace core

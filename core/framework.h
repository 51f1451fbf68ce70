#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/op.h"
#include "core/plan/plan.h"
#include "core/units.h"

namespace core {

// How a fused linear loss does without the logits: it makes the gradients of its input and weight in the forward pass and
// keeps them (Liger, arXiv 2410.10989), or makes each chunk's logits again in the backward pass.
enum class LinearLoss : std::uint8_t { gradients, recompute };

// Bytes per logit of one kind of loss.
struct LossFigures {
  double saved = 0;      // kept from forward to backward
  double transient = 0;  // alive inside the loss only; of a chunk's logits where the loss goes by chunks
  double traffic_forward = 0, traffic_backward = 0;  // memory traffic
};

// How tensor-parallel collectives run in parts beside their GEMMs (overlap=tensor). A gather has tp parts, which neighbours
// pass on. So does a scatter by copy engines, whose parts the receiver adds up at the end; one by kernels is a reduce-scatter
// of each of `scatter_parts` parts (0 = tp).
struct TensorParts {
  Mover gather = Mover::copy_engine, scatter = Mover::copy_engine;
  std::int64_t scatter_parts = 0;
};

// Launches that an operation of a kind stands for in a framework whose kernels are more, and smaller, than those that are priced:
// bias additions, transposes, gradients added to their sum, masks. What the host does for each takes time, whatever the kernel does.
struct Launches {
  struct Pass {
    std::int64_t forward = 1, backward = 1;
  };
  std::int64_t gemm = 1;             // a GEMM of the forward pass, with its bias where that is not added elsewhere
  std::int64_t input_gradient = 1;
  std::int64_t weight_gradient = 1;  // with the gradient of the bias, and both added to their sums
  Pass unfused_attention, flash_attention;  // with what splits and joins queries, keys and values
  Pass norm, activation, residual, rope, other;
  std::int64_t collective = 1;
  Pass router{0, 0};                 // scores, top k, auxiliary loss and counts of tokens, beyond the router's own GEMM
  double expert = 0;                 // of the host's work for each expert of a grouped GEMM, in launches
  double expert_bias_forward = 0, expert_bias_backward = 0;  // the same where its biases are added apart
  std::int64_t recompute = 0;        // bookkeeping of a body that runs its forward again, random states above all
};

// What adding the biases of experts' outputs, each weighted by its tokens, moves in memory where no GEMM does it: bytes for each
// element of the experts' output, with the weights in fp32 or in 16 bits; and of the biases of their inner layer, which have no
// weights, for each element of that.
struct ExpertBiases {
  double forward = 0, backward = 0;
  double narrow_forward = 0, narrow_backward = 0;
  double inner_forward = 0, inner_backward = 0;
};

// What moves in memory, for each micro-batch, around the gathers and reductions of parameters that are sharded unit by unit
// (FSDP).
struct UnitCopies {
  double gathers = 0;    // times gathered parameters are copied to where they are used
  double gradients = 0;  // times gradients are copied, as the backward made them, to where they are reduced
  double scalings = 0;   // passes over gradients in the format in which they travel, such as their division by the ranks

  bool any() const { return gathers > 0.0 || gradients > 0.0 || scalings > 0.0; }
};

// Workspaces of GEMMs: PyTorch's, one for each cuBLAS handle in use, and Transformer Engine's own, with further ones where
// experts' GEMMs run beside each other. Their sizes are those of a GPU architecture.
struct Workspaces {
  Bytes torch, engine;
  double handles = 0;  // of cuBLAS: the thread of the forward pass and the one of the backward pass have one each
  double grouped = 0;  // further ones of the engine

  Bytes all(bool has_experts) const { return torch * handles + engine * (has_experts ? 1.0 + grouped : 1.0); }
};

// What a training framework adds to the bare arithmetic, as in data/frameworks/NAME.json. Every figure has its source
// there.
struct Framework {
  std::string name;                    // "megatron", "fsdp"
  std::int64_t vocab_multiple = 1;     // vocabulary padded to a multiple of this times tp
  std::array<LossFigures, 3> losses;   // by Loss
  // In place of the unfused one where a run asks for Megatron-Core's native fusion: of now, and of 2025.
  std::optional<LossFigures> native_loss, native_loss_2025;
  LinearLoss linear_loss = LinearLoss::gradients;
  std::optional<std::int64_t> loss_chunk_tokens;  // of the linear loss; nothing = as many as make logits of the input's size
  // Memory traffic of elementwise kernels over that of one fused kernel: 1 = fused.
  double norm_traffic = 1, activation_traffic = 1, rope_traffic = 1;
  double attention_traffic = 0;        // copies of queries, keys, values and output around a fused attention kernel
  TensorParts tensor_parts;
  double bucket_parameters = 0;        // gradients are reduced in buckets of at least this many parameters,
  double bucket_parameters_per_rank = 0;  // and at least this many times the data-parallel size
  double gradient_buffers = 0;         // buffers of a bucket each into which gradients are copied to be reduced
  std::optional<double> prefetch_parameters;  // parameters gathered ahead of their use; nothing = the next body
  // Tensors in the weights' format that stand for the gradients of GEMM weights where GEMMs add gradients to the sum
  // themselves: kept for each shape of the layers' weights, and of the output layer's.
  double layer_gradient_placeholders = 0, output_gradient_placeholders = 0;
  bool recompute_stops_early = false;  // full recompute ends with the last tensor that the backward needs
  UnitCopies unit_copies;
  ExpertBiases expert_biases;
  bool keeps_output_gather = false;    // the output layer's input, gathered with sequence parallel, has memory of its own
  // Full recompute keeps a tensor-parallel rank's part of a layer's input and gathers it (--partition-activations of DeepSpeed,
  // --distribute-saved-activations of Megatron-LM): of a run, not of a file.
  bool divides_checkpoints = false;
  bool flat_gradients = false;         // the optimizer's share of gradients is copied into one tensor as wide as its weights
  // Micro-batches whose weight gradient of the output layer waits for the end of the step (Megatron-LM,
  // --defer-embedding-wgrad-compute): of a run, not of a file.
  std::int64_t deferred_output_gradients = 0;
  bool sums_gradients_apart = false;   // GEMMs write a weight's gradient, which a kernel of its own adds to the sum
  bool keeps_gradients = false;        // gradients in the weights' format stay beside a sum in another one
  Bytes context;                       // CUDA context and libraries
  Workspaces workspaces;               // of the GPU architecture that it was loaded for
  Bytes communicator;                  // a communicator's buffers, for each group a rank is in
  Bytes allocation_unit;               // large blocks are rounded up to this
  double fragmentation = 0;            // share of short-lived memory lost between blocks
  Launches launches;
  Seconds host_per_launch;             // host time of a launch; the step is no faster than the host
  Seconds host_per_launch_graphs;      // the same for kernels inside a CUDA graph
  bool launches_wait = false;          // a launch waits until the kernel before it has ended (CUDA_LAUNCH_BLOCKING=1)
  double host_memory_factor = 1;       // host memory over what is offloaded: pinned buffers, copies, the processes themselves
  Seconds step_overhead;               // once a step: data, logging, gradient scaling
  std::vector<std::pair<std::string, std::string>> sources;

  const LossFigures& loss(Loss kind) const { return losses[static_cast<std::size_t>(kind)]; }
  Seconds host(CudaGraphs graphs) const {
    return graphs == CudaGraphs::layers ? host_per_launch_graphs : host_per_launch;
  }
};

// A framework whose layers another one shards fully, as Megatron-FSDP does Megatron-Core's: the loss stays the framework's own.
Framework sharded_by(const Framework& layers, Framework sharding);

// With the workspaces of a GPU architecture (Gpu::arch). Throws InputError.
Framework load_framework(std::string_view name, std::string_view arch);

}  // namespace core

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/graph/step_graph.h"
#include "core/graph/step_work.h"

namespace core {

using MemoryTerms = std::array<std::int64_t, memory_terms>;  // bytes by MemoryTerm

constexpr std::size_t index_of(MemoryTerm term) { return static_cast<std::size_t>(term); }

// What a body leaves in memory for one micro-batch, each tensor rounded up as the allocator does.
struct BodyMemory {
  std::int64_t activations = 0, logits = 0;                   // kept from forward to backward
  std::int64_t forward_transient = 0, backward_transient = 0, input_transient = 0;  // inside the cell only
  // A split backward: of `activations`, inputs of GEMMs, which stay until W; and what I makes and W needs.
  std::int64_t weight_inputs = 0, held = 0;
  std::int64_t host = 0;  // kept from forward to backward in host memory
  std::int64_t saved() const { return activations + logits; }
};
BodyMemory body_memory(const Body& body, const Framework& framework);

// The same of the bodies of a cell, in model order: what they leave, and the most that is alive while they run forward
// (each leaves its own before the next starts) or backward (each frees its own), both from nothing of this micro-batch.
struct CellMemory {
  std::int64_t activations = 0, logits = 0, forward_peak = 0, backward_peak = 0;
  std::int64_t weight_inputs = 0, held = 0, input_peak = 0;  // input_peak: of I, each body leaving what W needs
  std::int64_t host = 0;
  std::int64_t saved() const { return activations + logits; }
  std::int64_t left_for_weights() const { return weight_inputs + held; }
  // `count` bodies alike, one after another: the last of them stands on all the others.
  void add(const BodyMemory& body, std::int64_t count = 1) {
    const auto left = body.weight_inputs + body.held, first = saved() + body.saved() + body.input_transient;
    activations += count * body.activations;
    logits += count * body.logits;
    weight_inputs += count * body.weight_inputs;
    held += count * body.held;
    host += count * body.host;
    forward_peak = std::max(forward_peak, saved() + body.forward_transient);
    backward_peak = std::max(backward_peak, saved() + body.backward_transient);
    // I runs the last body first; what it leaves for W is there while the ones before it run.
    input_peak = std::max({input_peak + count * left, first + (count - 1) * left, saved() + body.input_transient});
  }
};

// The most that a forward and a backward need that overlap, beyond what is there before them. They go body by body, the first
// of the one beside the last of the other (Megatron-LM, models/common/model_chunk_schedule_plan.py), so that what a body
// leaves takes the place of what the other has freed. Bodies in model order.
std::int64_t pair_peak(const std::vector<const BodyMemory*>& forward, const std::vector<const BodyMemory*>& backward);

// Parameters of a pipeline rank, and its largest bodies: all that its resident memory depends on.
struct RankParameters {
  StateElements all, gemm;
  double largest_body = 0.0;   // elements of the largest body: what is gathered or reduced at once
  double largest_stage = 0.0;  // elements of the largest virtual stage
  double newton_schulz = 0.0;  // FLOPs of one Newton-Schulz step over its GEMM weights
  double layer_weights = 0.0, output_weight = 0.0;  // the most of Body::layer_weights and output_weight
  StateElements matrix_squares, newton_schulz_elements;  // sums of Body's
  double gather_buffer = 0.0, output_operands = 0.0;     // bytes: the most of Body's

  // A part of them, where others hold copies of the same and share the work.
  RankParameters share(double copies) const {
    const auto part = [&](const StateElements& n) { return StateElements{n.dense / copies, n.experts / copies}; };
    return {part(all), part(gemm), largest_body, largest_stage, newton_schulz / copies, layer_weights, output_weight, part(matrix_squares),
            part(newton_schulz_elements), gather_buffer, output_operands};
  }
};
RankParameters rank_parameters(const StepWork& work, std::int64_t pipeline_rank);

// Memory that a rank holds all through the step (ZeRO paper, arXiv 1910.02054, section 3, for the states; Megatron's
// distributed optimizer is its stage 1): weights, gradients, optimizer states, gathered and unreduced bodies, workspaces,
// communicators, context. Bytes.
MemoryTerms resident_memory(const RankParameters& parameters,
                            const ParallelPlan& plan,
                            const Recipe& recipe,
                            const Framework& framework);

// Bytes that a rank's offloaded states take on its host: main weights, moments and the gradients that the optimizer reads;
// weights. Without the framework's buffers.
double host_memory(const RankParameters& parameters, const ParallelPlan& plan, const Recipe& recipe);
// The most that each pipeline rank of a table keeps on its host of activations; `kept`: of a micro-batch, by model stage.
std::vector<double> host_activations(const ScheduleTable& table, const std::vector<double>& kept);
// Bytes of the node whose ranks need most together, buffers of the framework included; `of_rank`: of each rank, by pipeline rank.
double node_host_memory(const std::vector<double>& of_rank, const ParallelPlan& plan, std::int64_t gpus_per_node,
                        const Framework& framework);

// Memory lost between blocks, for a peak of short-lived memory.
std::int64_t fragmentation(std::int64_t short_lived, const Framework& framework);

}  // namespace core

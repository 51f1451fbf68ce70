#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/measured/measured_run.h"
#include "core/model/model.h"
#include "core/plan/plan.h"

namespace simulator {

// How a source counts FLOPs. N: parameters, s: sequence, l, h: layers, hidden size; per token, of
// forward and backward.
enum class FlopsConvention : std::uint8_t {
  none,
  model_full,          // GEMM weights and output layer 6 each, attention 12 l h s
  model_causal,        // the same, attention over the keys that a query meets
  parameters_full,     // 6 N of all parameters (a tied table once), attention 12 l h s (MosaicML)
  parameters,          // 6 N
  hardware_recompute,  // model_full, and the forward of all layers once more (arXiv 2104.04473,
                       // equation 3)
  hardware_parameters  // 8 N: forward once more
};
std::string_view name_of(FlopsConvention convention);
// The convention that a source's words stand for. Throws InputError for words that stand for none.
FlopsConvention convention_of(std::string_view words);

// FLOPs of a token under a convention: forward, backward and what else it counts. `parameters` of
// the source where it prints them, else the model's own. Nothing without a convention.
std::optional<double> flops_per_token(FlopsConvention convention,
                                      const core::ModelSpec& model,
                                      std::int64_t seq,
                                      std::optional<double> parameters);

// What a source's memory figure counts.
enum class MemoryKind : std::uint8_t {
  none,
  allocated,  // PyTorch's allocator: no context, no communicators, no gaps
  reserved,   // what the allocator took from the driver: gaps too
  process     // nvidia-smi: all of it
};
std::string_view name_of(MemoryKind kind);
// Whose figure it is, of a pipeline's ranks.
enum class MemoryRank : std::uint8_t { fullest, last, first_or_last };

// What a row measured, in our units. Where a source prints no step time it follows from tokens/s,
// or from TFLOP/s under its convention.
struct Measurement {
  std::optional<double> step_time_s;
  std::string step_time_from;  // "step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu_reported";
                               // "" for none
  FlopsConvention convention = FlopsConvention::none;
  std::optional<double> tflops_per_gpu, mfu;  // as printed, under the convention; mfu as a fraction
  std::optional<double> memory_GiB;
  MemoryKind memory_kind = MemoryKind::none;
  MemoryRank memory_rank = MemoryRank::fullest;
  bool out_of_memory = false;
};
Measurement measurement_of(const core::MeasuredRun& run,
                           const core::ModelSpec& model,
                           const core::ParallelPlan& plan,
                           std::int64_t seq);

}  // namespace simulator

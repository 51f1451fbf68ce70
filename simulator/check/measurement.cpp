#include "simulator/check/measurement.h"

#include <fmt/format.h>

#include <charconv>

#include "core/error.h"
#include "core/units.h"

namespace simulator {

namespace {

using core::MeasuredRun;

constexpr double gigabyte = 1e9;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The output layer's part of a token's forward FLOPs, all of its copies.
double output_flops(const core::ModelSpec& model) {
  return 2.0 * static_cast<double>(model.hidden) * static_cast<double>(model.vocab) *
         static_cast<double>(1 + model.mtp.size());
}

// 12 l h s: attention's part of forward and backward.
double attention_flops(const core::ModelSpec& model, std::int64_t seq) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < model.layers(); ++i) {
    for (const auto& block : model.layer(i).blocks) {
      if (block.kind == "attention")
        sum +=
            12.0 * static_cast<double>(block.shape.at("heads") * block.shape.at("head_dim") * seq);
    }
  }
  return sum;
}

struct Memory {
  MemoryKind kind;
  MemoryRank rank;
};

// Words of sources for their figure. What is called a peak without a kind is the allocator's, as
// frameworks log it.
Memory memory_of(const MeasuredRun& run) {
  const std::string& kind = run.memory_kind;
  const auto rank = run.logging_rank == "last"                         ? MemoryRank::last
                    : run.logging_rank == "max of first and last node" ? MemoryRank::first_or_last
                                                                       : MemoryRank::fullest;
  if (!run.test_case.empty()) return {MemoryKind::allocated, rank};
  if (kind.starts_with("allocated") || kind.starts_with("max GPU RAM (allocated") ||
      kind.starts_with("peak")) {
    return {MemoryKind::allocated, rank};
  }
  if (kind.starts_with("reserved")) return {MemoryKind::reserved, rank};
  if (contains(kind, "nvidia-smi") || kind.starts_with("per-GPU"))
    return {MemoryKind::process, rank};
  return {MemoryKind::none, rank};
}

// "51.4% MFU / 52.8% HFU", "44% of peak (hardware flops)", "0.47": the first number, as a fraction.
std::optional<double> mfu_of(const MeasuredRun& run) {
  double value = 0.0;
  const std::string& text = run.mfu_reported;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || !(value > 0.0 && value < 1e6)) return std::nullopt;
  const bool percent = contains(text, "%") || value > 1.0;
  return percent ? value / 100.0 : value;
}

void take_time(const MeasuredRun& run, double tokens, std::optional<double> flops, Measurement& m) {
  const double gpus = static_cast<double>(*run.gpus);
  if (run.step_time_s && *run.step_time_s > 0.0) {
    m.step_time_s = run.step_time_s, m.step_time_from = "step_time_s";
  } else if (run.tokens_per_s_per_gpu && *run.tokens_per_s_per_gpu > 0.0) {
    m.step_time_s = tokens / (*run.tokens_per_s_per_gpu * gpus),
    m.step_time_from = "tokens_per_s_per_gpu";
  } else if (run.tflops_per_gpu_reported && *run.tflops_per_gpu_reported > 0.0 && flops) {
    m.step_time_s = tokens * *flops / (*run.tflops_per_gpu_reported * 1e12 * gpus),
    m.step_time_from = "tflops_per_gpu_reported";
  }
}

void take_memory(const MeasuredRun& run, Measurement& m) {
  const Memory memory = memory_of(run);
  m.memory_kind = memory.kind, m.memory_rank = memory.rank;
  if (!run.peak_memory_gb || *run.peak_memory_gb <= 0.0 || memory.kind == MemoryKind::none) return;
  const bool gib = !run.test_case.empty() || contains(run.memory_kind, "GiB");
  m.memory_GiB = gib ? *run.peak_memory_gb : *run.peak_memory_gb * gigabyte / core::gibibyte;
}

}  // namespace

std::string_view name_of(FlopsConvention convention) {
  switch (convention) {
    case FlopsConvention::none:
      return "none";
    case FlopsConvention::model_full:
      return "model_full";
    case FlopsConvention::model_causal:
      return "model_causal";
    case FlopsConvention::parameters_full:
      return "6ND_full";
    case FlopsConvention::parameters:
      return "6ND";
    case FlopsConvention::hardware_recompute:
      return "hardware_recompute";
    case FlopsConvention::hardware_parameters:
      return "8ND";
  }
  CORE_ASSERT(false);
}

std::string_view name_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::none:
      return "none";
    case MemoryKind::allocated:
      return "allocated";
    case MemoryKind::reserved:
      return "reserved";
    case MemoryKind::process:
      return "process";
  }
  CORE_ASSERT(false);
}

FlopsConvention convention_of(std::string_view words) {
  if (words.empty()) return FlopsConvention::none;
  if (contains(words, "8*P*tokens")) return FlopsConvention::hardware_parameters;
  if (words.starts_with("hardware")) return FlopsConvention::hardware_recompute;
  if (contains(words, "6*P + non-causal")) return FlopsConvention::parameters_full;
  if (contains(words, "6*N") || words == "6ND") return FlopsConvention::parameters;
  if (contains(words, "non-causal") || contains(words, "appendix A") || words == "model_full")
    return FlopsConvention::model_full;
  if (contains(words, "causal") || contains(words, "Megatron"))
    return FlopsConvention::model_causal;
  if (words.starts_with("model")) return FlopsConvention::model_full;
  throw core::InputError(fmt::format("flops_convention {}: not known", words));
}

std::optional<double> flops_per_token(FlopsConvention convention,
                                      const core::ModelSpec& model,
                                      std::int64_t seq,
                                      std::optional<double> parameters) {
  const auto n = [&] {
    return parameters.value_or(static_cast<double>(core::count_parameters(model).active));
  };
  const auto full = [&] { return core::flops_per_token_forward(model, seq); };
  switch (convention) {
    case FlopsConvention::none:
      return std::nullopt;
    case FlopsConvention::model_full:
      return 3.0 * full();
    case FlopsConvention::model_causal:
      return 3.0 * core::flops_per_token_forward(model, seq, true);
    case FlopsConvention::parameters_full:
      return 6.0 * n() + attention_flops(model, seq);
    case FlopsConvention::parameters:
      return 6.0 * n();
    case FlopsConvention::hardware_recompute:
      return 4.0 * full() - output_flops(model);
    case FlopsConvention::hardware_parameters:
      return 8.0 * n();
  }
  CORE_ASSERT(false);
}

Measurement measurement_of(const MeasuredRun& run,
                           const core::ModelSpec& model,
                           const core::ParallelPlan& plan,
                           std::int64_t seq) {
  Measurement m;
  m.convention = convention_of(run.flops_convention);
  m.tflops_per_gpu = run.tflops_per_gpu_reported;
  m.mfu = mfu_of(run);
  m.out_of_memory = run.out_of_memory;
  const double tokens = static_cast<double>(plan.global_batch) * static_cast<double>(seq);
  if (!run.out_of_memory)
    take_time(run, tokens, flops_per_token(m.convention, model, seq, run.params_total), m);
  take_memory(run, m);
  return m;
}

}  // namespace simulator

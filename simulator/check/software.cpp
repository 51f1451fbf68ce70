#include "simulator/check/software.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "core/error.h"
#include "simulator/cost/cost.h"

namespace simulator {

namespace {

using core::AttentionKernel;
using core::MeasuredRun;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Year and month of a release as months since year 0: "(2025-10-08)" anywhere in its name, or
// "NeMo 25.09".
std::optional<int> month_of(std::string_view release) {
  const auto number = [](std::string_view text) {
    int value = -1;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() ? value : -1;
  };
  for (std::size_t i = 0; i + 7 <= release.size(); ++i) {
    const int year = number(release.substr(i, 4)), month = number(release.substr(i + 5, 2));
    if (release[i + 4] == '-' && year >= 2000 && month >= 1 && month <= 12)
      return 12 * year + month;
  }
  if (release.starts_with("NeMo ") && release.size() >= 10) {
    const int year = number(release.substr(5, 2)), month = number(release.substr(8, 2));
    if (year >= 0 && month >= 1 && month <= 12) return 12 * (2000 + year) + month;
  }
  return std::nullopt;
}

// Transformer Engine 2 came with the containers of 2025; Megatron-LM keeps the output layer's since
// August 2025 (data/frameworks/megatron.json).
constexpr int transformer_engine_2 = 12 * 2025 + 1, output_placeholders = 12 * 2025 + 8;

// Gradients that GEMMs add to the sum themselves, where a row or an argument says. Megatron-LM's functional tests turn that off
// (--no-gradient-accumulation-fusion, in 211 of 216 model_config.yaml of August 2026), but for those named here.
std::optional<bool> gradient_fusion_of(const MeasuredRun& run) {
  if (run.gradient_fusion || run.test_case.empty()) return run.gradient_fusion;
  return contains(run.test_case, "memory_speed") || contains(run.test_case, "defer_embedding_wgrad");
}

void take_placeholders(const MeasuredRun& run, core::Framework& framework, Notes& notes) {
  if (framework.layer_gradient_placeholders == 0.0) return;
  const auto month = month_of(run.release);
  const bool old = run.year.value_or(2026) < 2025 || run.iteration_time_ms.has_value();
  if (!month && !old) notes.assume("tensors in place of gradients as in the newest Megatron-LM");
  const bool local = run.transformer_impl == "local" || !gradient_fusion_of(run).value_or(true);
  if (old || local || month.value_or(output_placeholders) < transformer_engine_2)
    framework.layer_gradient_placeholders = 0.0;
  if (old || !gradient_fusion_of(run).value_or(true) ||
      month.value_or(output_placeholders) < output_placeholders)
    framework.output_gradient_placeholders = 0.0;
}

// Megatron-LM adds weights' gradients inside their GEMMs since February 2022, where an option does not turn that off.
constexpr int gradient_fusion_year = 2022;

void take_gradient_sums(const MeasuredRun& run, core::Framework& framework) {
  if (stack_of(run) != Stack::megatron || framework.keeps_gradients) return;
  const bool fused = run.year.value_or(2026) >= gradient_fusion_year;
  framework.sums_gradients_apart = !gradient_fusion_of(run).value_or(fused || !framework.sums_gradients_apart);
}

// Tests that are to repeat bit by bit give cuBLAS workspaces of 32 MiB (CUBLAS_WORKSPACE_CONFIG=:4096:8), which is nearly all.
constexpr double deterministic_workspace_MiB = 32.0;

void take_workspaces(const MeasuredRun& run, core::Framework& framework) {
  if (run.test_case.empty() || run.gradient_fusion) return;  // a log, which is not of these tests
  // Tests without --moe-grouped-gemm run experts one after another.
  for (const auto* word : {"te_4experts2parallel", "8experts2parallel_dist_optimizer", "8experts2parallel_multi_dist"}) {
    if (contains(run.test_case, word)) framework.workspaces.grouped = 0.0;
  }
  for (const auto* word : {"nondeterministic", "pp2_cp2", "cross_entropy_loss_fusion", "reshard", "memory_speed", "fsdp2"}) {
    if (contains(run.test_case, word)) return;
  }
  framework.workspaces.torch = core::Bytes{deterministic_workspace_MiB * core::mebibyte};
}

// From 2026 on torch.compile keeps one copy of the logits less in Megatron-Core's native loss (data/frameworks/megatron.json).
constexpr int leaner_native_loss = 12 * 2026 + 1;

void take_native_loss(const MeasuredRun& run, core::Framework& framework) {
  if (run.cross_entropy_fusion != "native" || fuses_loss(run) || !framework.native_loss) return;
  const bool old = month_of(run.release).value_or(leaner_native_loss) < leaner_native_loss;
  framework.losses[static_cast<std::size_t>(core::Loss::unfused)] = old ? *framework.native_loss_2025 : *framework.native_loss;
}

void take_facts(const SourceFacts& facts, core::Framework& framework) {
  framework.launches_wait = facts.launches_wait;
  framework.divides_checkpoints = facts.divides_checkpoints;
  framework.deferred_output_gradients = facts.deferred_output_gradients.value_or(0);
}

AttentionKernel best_of(AttentionKernel wanted, const core::Gpu& gpu) {
  return attention_available(wanted, gpu.arch) ? wanted : best_attention(gpu.arch);
}

// MosaicML's llm-foundry takes FlashAttention 2 from its version 0.3 on.
AttentionKernel flash_of(const MeasuredRun& run, const core::Gpu& gpu, Notes& notes) {
  if (run.attention_impl == "FA3") return best_of(AttentionKernel::flash3, gpu);
  if (contains(run.release, "llm-foundry v0.0")) {
    notes.assume("FlashAttention 1, the flash-attn of llm-foundry before 0.3");
    return best_of(AttentionKernel::flash1, gpu);
  }
  return best_of(AttentionKernel::flash2, gpu);
}

}  // namespace

std::string_view name_of(Stack stack) {
  switch (stack) {
    case Stack::megatron:
      return "megatron";
    case Stack::fsdp:
      return "fsdp";
    case Stack::deepspeed:
      return "deepspeed";
  }
  CORE_ASSERT(false);
}

Stack stack_of(const MeasuredRun& run) {
  const std::string& name = run.framework;
  if (contains(name, "FSDP") || contains(name, "torchtitan")) return Stack::fsdp;
  const bool zero =
      run.zero_stage_or_fsdp.starts_with("zero2") || run.zero_stage_or_fsdp.starts_with("zero3");
  if (zero && contains(name, "DeepSpeed")) return Stack::deepspeed;
  return Stack::megatron;
}

std::string_view framework_file_of(const MeasuredRun& run) {
  const Stack stack = stack_of(run);
  if (contains(run.framework, "llm-foundry")) return "llm-foundry";
  // torchtitan compiles where it is told to.
  const bool eager = contains(run.framework, "torchtitan") && !contains(run.notes, "compile");
  if (stack == Stack::fsdp && eager) return "fsdp-eager";
  if (stack != Stack::megatron) return name_of(stack);
  if (contains(run.framework, "DeepSpeed") || run.iteration_time_ms) return "megatron-deepspeed";
  const bool old = contains(run.framework, "Megatron") && run.year.value_or(2026) <= 2022;
  return old ? "megatron-2021" : "megatron";
}

bool overlaps_by_default(const MeasuredRun& run) {
  if (stack_of(run) != Stack::megatron) return true;
  return run.year.value_or(2021) > 2022;
}

bool fuses_loss(const MeasuredRun& run) {
  const std::string& fusion = run.cross_entropy_fusion;
  return fusion == "te" || contains(fusion, "flash-attn");
}

core::Framework framework_of(
    const MeasuredRun& run, const SourceFacts& facts, std::string_view name, const core::Gpu& gpu, Notes& notes) {
  core::Framework framework = core::load_framework(name, gpu.arch);
  if (run.padded_vocab) framework.vocab_multiple = 1;
  take_placeholders(run, framework, notes);
  take_gradient_sums(run, framework);
  take_facts(facts, framework);
  if (!run.test_case.empty() && !run.gradient_fusion && name != "fsdp") {
    notes.assume("gradients' sums and GEMMs' workspaces are those of Megatron-LM's tests of that name");
  }
  take_workspaces(run, framework);
  take_native_loss(run, framework);
  return framework;
}

AttentionKernel attention_of(const MeasuredRun& run, const core::Gpu& gpu, Notes& notes) {
  const std::string& backend = run.attention_backend;
  if (backend == "unfused") return AttentionKernel::unfused;
  if (backend.empty() && run.iteration_time_ms) {
    notes.assume("unfused attention, as Megatron-DeepSpeed of 2022 has it");
    return AttentionKernel::unfused;
  }
  if (backend == "flash") return flash_of(run, gpu, notes);
  if (backend == "sdpa" || backend == "flex") {
    notes.assume(fmt::format("{} runs at the rate of FlashAttention 2", backend));
    return best_of(AttentionKernel::flash2, gpu);
  }
  if (!backend.empty() && backend != "auto" && backend != "fused-cudnn") {
    throw core::InputError(fmt::format("attention_backend {}: not known", backend));
  }
  const auto best = best_attention(gpu.arch);
  notes.assume(fmt::format("attention {} runs at the rate of {}",
                           backend.empty() ? "that is not stated" : backend,
                           core::name_of(best)));
  return best;
}

}  // namespace simulator

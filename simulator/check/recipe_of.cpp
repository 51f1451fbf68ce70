#include "simulator/check/recipe_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "simulator/check/software.h"

namespace simulator {

namespace {

using core::MeasuredRun;

struct Precision {
  std::string_view source, recipe;
};

constexpr std::array precisions = std::to_array<Precision>({
    {"fp16", "fp16"},
    {"fp16 mixed", "fp16"},
    {"bf16", "bf16"},
    {"BF16", "bf16"},
    {"bf16 (fp32 grad accumulation)", "bf16"},
    {"amp_bf16 (FSDP mixed precision DEFAULT)", "bf16"},
    {"bf16 (FSDP mixed precision PURE)", "bf16"},
    {"amp_fp8 (FSDP mixed precision DEFAULT)", "fp8"},
    {"fp8 (TE hybrid)", "fp8"},
    {"fp8 current scaling", "fp8-current"},
    {"FP8", "fp8-current"},  // Megatron-Bridge: per tensor, current scaling
    {"FP8-CS", "fp8-current"},
    {"float8 linears", "fp8-current"},  // torchao scales each tensor as it is
    {"float8 linears (fp8 all-gather)", "fp8-current"},
    {"float8 tensorwise", "fp8-current"},
    {"float8 rowwise", "fp8-current"},
    {"MXFP8", "mxfp8"},
    {"FP8-MX", "mxfp8"},
    {"FP8 32x32 block (MXFP8)", "mxfp8"},
    {"FP8 128x128 weight / 1x128 act", "fp8-block"},
    {"NVFP4", "nvfp4"},
});

bool is_muon(const MeasuredRun& run) {
  return run.test_case.find("muon") != std::string::npos ||
         run.optimizer.find("muon") != std::string::npos;
}

bool is_bridge(const MeasuredRun& run) { return run.framework.starts_with("Megatron-Bridge"); }

std::string_view recipe_name(const MeasuredRun& run, Notes& notes) {
  if (run.framework.starts_with("NeMo AutoModel") && run.precision == "bf16" &&
      run.main_params_dtype.empty()) {
    // Its benchmark configurations hand bf16 weights to torch.optim.Adam.
    notes.assume(
        "weights, gradients and moments in bf16 alone, as AutoModel's benchmarks hand them to the "
        "optimizer");
    return "bf16-pure";
  }
  if (run.iteration_time_ms) {
    notes.assume("fp16 and no sharing of optimizer states, as vTrain's configurations have it");
    return "fp16";
  }
  if (!run.test_case.empty()) {
    if (!run.fp8_format.empty()) return "fp8";
    if (run.fp16.value_or(false)) return "fp16";
    if (run.bf16.value_or(false)) return is_muon(run) ? "bf16-muon" : "bf16";
    throw core::InputError("neither bf16 nor fp16: training in fp32 has no recipe");
  }
  for (const auto& precision : precisions) {
    if (precision.source == run.precision) return precision.recipe;
  }
  throw core::InputError(fmt::format("precision {}: no recipe stands for it", run.precision));
}

double bytes_of(std::string_view format, std::string_view column) {
  if (format == "fp32") return 4.0;
  if (format == "bf16" || format == "fp16") return 2.0;
  if (format == "int8") return 1.0;
  throw core::InputError(fmt::format("{} {}: expected fp32, bf16, fp16 or int8", column, format));
}

bool gathers_weights(const MeasuredRun& run) {
  return run.zero_stage_or_fsdp.find("fsdp") != std::string::npos ||
         run.zero_stage_or_fsdp.starts_with("zero3");
}

// Megatron sums gradients in the buffer that it reduces; FSDP keeps fp32 shards and reduces in
// another format.
void take_states(const MeasuredRun& run, core::Recipe& recipe) {
  if (!run.grad_dtype.empty()) {
    recipe.gradient_reduce_bytes = bytes_of(run.grad_dtype, "grad_dtype");
    if (!gathers_weights(run)) recipe.gradient_bytes = recipe.gradient_reduce_bytes;
  }
  if (!run.main_params_dtype.empty())
    recipe.main_weight_bytes = bytes_of(run.main_params_dtype, "main_params_dtype");
  // FSDP's one copy of a weight is the fp32 shard: what is gathered in 16 bits is not kept. 2 bytes
  // count as the weight.
  if (stack_of(run) == Stack::fsdp && recipe.main_weight_bytes > recipe.weight_bytes)
    recipe.main_weight_bytes -= recipe.weight_bytes;
  if (!run.optimizer_state_dtype.empty()) {
    recipe.moment1_bytes = recipe.moment2_bytes =
        bytes_of(run.optimizer_state_dtype, "optimizer_state_dtype");
    recipe.matrix_moment1_bytes = recipe.matrix_moment2_bytes = recipe.moment1_bytes;
  }
}

// Weights kept in fp8 alone: the 16-bit ones are gone and the copies stand for them. Per-tensor and
// per-block scales let them travel so; MXFP8's two layouts are made after a gather in bf16
// (Megatron-Core, reuse-grad-buf-for-mxfp8-param-ag).
void take_fp8_weights(const MeasuredRun& run, core::Recipe& recipe, Notes& notes) {
  if (!run.fp8_params.value_or(false) || recipe.weight_copy_bytes <= 0.0) return;
  if (recipe.weight_copy_bytes < 2.0) {
    notes.ignore(
        fmt::format("fp8_params: weights of {} are taken to be kept in 16 bits too", recipe.name));
    return;
  }
  recipe.weight_copy_bytes -= recipe.weight_bytes;
  if (recipe.name != "mxfp8") recipe.parameter_gather_bytes = 1.0;
}

// What all presets of its performance recipes have, where a row states none: gradients reduced in
// bf16, weights in fp8 where GEMMs are, no layers kept in bf16.
void take_bridge(const MeasuredRun& run, core::Recipe& recipe, Notes& notes) {
  if (!is_bridge(run)) return;
  if (run.grad_dtype.empty()) {
    recipe.gradient_bytes = recipe.gradient_reduce_bytes = 2.0;
    notes.assume("gradients in bf16, as in Megatron-Bridge's performance presets");
  }
  if (!run.fp8_params && recipe.name.find("fp8") != std::string::npos) {
    MeasuredRun as_presets = run;
    as_presets.fp8_params = true;
    take_fp8_weights(as_presets, recipe, notes);
    notes.assume("weights kept in fp8, as in Megatron-Bridge's performance presets");
  }
  if (recipe.high_first + recipe.high_last > 0) {
    recipe.high_first = recipe.high_last = 0;
    notes.assume("no layers kept in bf16, as in Megatron-Bridge's performance presets");
  }
}

// As mxfp8-wide has attention and the output layer.
void take_wide(const SourceFacts& facts, core::Recipe& recipe) {
  if (!facts.fp8_attention && !facts.fp8_output) return;
  if (recipe.name != "mxfp8")
    throw core::InputError(fmt::format(
        "sources.json: attention or output layer in fp8 of a run in {}, expected mxfp8", recipe.name));
  const core::Recipe wide = core::load_recipe("mxfp8-wide");
  if (facts.fp8_attention) recipe.core_attention = wide.core_attention;
  if (!facts.fp8_output) return;
  constexpr auto output = static_cast<std::size_t>(core::LinearKind::output);
  recipe.linears[output] = wide.linears[output];
  recipe.gemm_output = wide.gemm_output;
}

void check_formats(const core::Recipe& recipe, const core::Gpu& gpu) {
  const auto& architectures = recipe.architectures;
  const bool known =
      architectures.empty() ||
      std::find(architectures.begin(), architectures.end(), gpu.arch) != architectures.end();
  if (!known)
    throw core::InputError(
        fmt::format("recipe {}: {} does not apply its scales", recipe.name, gpu.name));
  for (const auto& format : recipe.rates()) {
    if (!gpu.peak(format))
      throw core::InputError(
          fmt::format("recipe {}: {} has no {} tensor cores", recipe.name, gpu.name, format));
  }
}

void take_optimizer(const MeasuredRun& run, Notes& notes) {
  const std::string& name = run.optimizer;
  const bool adam = name.empty() || name.find("adam") != std::string::npos;
  if (!adam && !is_muon(run))
    throw core::InputError(fmt::format("optimizer {}: expected a kind of Adam, or Muon", name));
  if (name.starts_with("8-bit")) notes.ignore("blocks' scale factors of 8-bit moments");
}

}  // namespace

core::Recipe recipe_of(const MeasuredRun& run,
                       const SourceFacts& facts,
                       const core::Gpu& gpu,
                       Notes& notes) {
  core::Recipe recipe = core::load_recipe(recipe_name(run, notes));
  take_optimizer(run, notes);
  take_states(run, recipe);
  take_fp8_weights(run, recipe, notes);
  take_bridge(run, recipe, notes);
  take_wide(facts, recipe);
  if (run.precision == "float8 rowwise") notes.ignore("scales by row instead of by tensor");
  if (run.precision == "float8 linears (fp8 all-gather)") recipe.parameter_gather_bytes = 1.0;
  check_formats(recipe, gpu);
  return recipe;
}

}  // namespace simulator

#include "core/measured/columns.h"

#include <array>

#include "core/error.h"

namespace core {

namespace {

using R = MeasuredRun;

constexpr std::array training_runs = std::to_array<MeasuredColumn>({
    {.name = "id", .place = &R::id, .required = true},
    {.name = "source_title", .place = &R::source_title},
    {.name = "source_ref", .place = &R::source_ref},
    {.name = "year", .place = &R::year},
    {.name = "framework", .place = &R::framework, .required = true},
    {.name = "model_name", .place = &R::model_name},
    {.name = "model_family", .place = &R::model_family, .required = true},
    {.name = "params_total", .place = &R::params_total},
    {.name = "params_active", .place = &R::params_active},
    {.name = "layers", .place = &R::layers, .required = true},
    {.name = "hidden", .place = &R::hidden, .required = true},
    {.name = "heads", .place = &R::heads, .required = true},
    {.name = "kv_heads", .place = &R::kv_heads},
    {.name = "ffn_hidden", .place = &R::ffn_hidden, .required = true},
    {.name = "vocab", .place = &R::vocab, .required = true},
    {.name = "seq_len", .place = &R::seq_len, .required = true},
    {.name = "experts", .place = &R::experts},
    {.name = "top_k", .place = &R::top_k},
    {.name = "gpu", .place = &R::gpu, .required = true},
    {.name = "gpus", .place = &R::gpus, .required = true},
    {.name = "gpus_per_node", .place = &R::gpus_per_node},
    {.name = "interconnect", .place = &R::interconnect},
    {.name = "tp", .place = &R::tp},
    {.name = "sp", .place = &R::sp},
    {.name = "cp", .place = &R::cp},
    {.name = "pp", .place = &R::pp},
    {.name = "vpp", .place = &R::vpp},
    {.name = "ep", .place = &R::ep},
    {.name = "dp", .place = &R::dp},
    {.name = "zero_stage_or_fsdp", .place = &R::zero_stage_or_fsdp},
    {.name = "schedule", .place = &R::schedule},
    {.name = "micro_batch", .place = &R::micro_batch, .required = true},
    {.name = "global_batch_sequences", .place = &R::global_batch_sequences, .required = true},
    {.name = "recompute", .place = &R::recompute},
    {.name = "precision", .place = &R::precision, .required = true},
    {.name = "optimizer", .place = &R::optimizer},
    {.name = "attention_impl", .place = &R::attention_impl},
    {.name = "step_time_s", .place = &R::step_time_s},
    {.name = "tokens_per_s_per_gpu", .place = &R::tokens_per_s_per_gpu},
    {.name = "tflops_per_gpu_reported", .place = &R::tflops_per_gpu_reported},
    {.name = "flops_convention", .place = &R::flops_convention},
    {.name = "mfu_reported", .place = &R::mfu_reported},
    {.name = "peak_memory_gb", .place = &R::peak_memory_gb},
    {.name = "memory_kind", .place = &R::memory_kind},
    {.name = "notes", .place = &R::notes},
});

// Added to training_runs and to the functional tests alike.
constexpr std::array added = std::to_array<MeasuredColumn>({
    {.name = "release", .place = &R::release},
    {.name = "head_dim", .place = &R::head_dim},
    {.name = "gated_mlp", .place = &R::gated_mlp},
    {.name = "activation", .place = &R::activation},
    {.name = "norm", .place = &R::norm},
    {.name = "tied_embeddings", .place = &R::tied_embeddings},
    {.name = "padded_vocab", .place = &R::padded_vocab},
    {.name = "first_dense_layers", .place = &R::first_dense_layers},
    {.name = "dense_ffn_hidden", .place = &R::dense_ffn_hidden},
    {.name = "shared_experts", .place = &R::shared_experts},
    {.name = "moe_capacity", .place = &R::moe_capacity},
    {.name = "moe_dispatcher", .place = &R::moe_dispatcher},
    {.name = "q_lora", .place = &R::q_lora},
    {.name = "kv_lora", .place = &R::kv_lora},
    {.name = "qk_nope", .place = &R::qk_nope},
    {.name = "qk_rope", .place = &R::qk_rope},
    {.name = "v_dim", .place = &R::v_dim},
    {.name = "mtp_layers", .place = &R::mtp_layers},
    {.name = "sliding_window", .place = &R::sliding_window},
    {.name = "attention_backend", .place = &R::attention_backend},
    {.name = "dropout", .place = &R::dropout},
    {.name = "cp_method", .place = &R::cp_method},
    {.name = "nic_gbps_per_gpu", .place = &R::nic_gbps_per_gpu},
    {.name = "nvlink_domain", .place = &R::nvlink_domain},
    {.name = "grad_dtype", .place = &R::grad_dtype},
    {.name = "main_params_dtype", .place = &R::main_params_dtype},
    {.name = "optimizer_state_dtype", .place = &R::optimizer_state_dtype},
    {.name = "fp8_params", .place = &R::fp8_params},
    {.name = "overlap_grad_reduce", .place = &R::overlap_grad_reduce},
    {.name = "overlap_param_gather", .place = &R::overlap_param_gather},
    {.name = "tp_comm_overlap", .place = &R::tp_comm_overlap},
    {.name = "ep_comm_overlap", .place = &R::ep_comm_overlap},
    {.name = "cuda_graphs", .place = &R::cuda_graphs},
    {.name = "cross_entropy_fusion", .place = &R::cross_entropy_fusion},
    {.name = "recompute_modules", .place = &R::recompute_modules},
    {.name = "fsdp_reshard_after_forward", .place = &R::fsdp_reshard_after_forward},
    {.name = "expandable_segments", .place = &R::expandable_segments},
    {.name = "expert_tp", .place = &R::expert_tp},
    {.name = "expert_dp", .place = &R::expert_dp},
    {.name = "pp_layout", .place = &R::pp_layout},
    {.name = "gpu_power_w", .place = &R::gpu_power_w},
    {.name = "logging_rank", .place = &R::logging_rank},
    {.name = "derived_columns", .place = &R::derived_columns},
});

constexpr std::array functional_tests = std::to_array<MeasuredColumn>({
    {.name = "id", .place = &R::id, .required = true},
    {.name = "test_case", .place = &R::test_case, .required = true},
    {.name = "gpu", .place = &R::gpu, .required = true},
    {.name = "gpus", .place = &R::gpus, .required = true},
    {.name = "gpus_per_node", .place = &R::gpus_per_node},
    {.name = "layers", .place = &R::layers, .required = true},
    {.name = "hidden", .place = &R::hidden, .required = true},
    {.name = "heads", .place = &R::heads, .required = true},
    {.name = "kv_groups", .place = &R::kv_heads},
    {.name = "ffn_hidden", .place = &R::ffn_hidden},
    {.name = "swiglu", .place = &R::swiglu},
    {.name = "seq_len", .place = &R::seq_len, .required = true},
    {.name = "experts", .place = &R::experts},
    {.name = "top_k", .place = &R::top_k},
    {.name = "moe_ffn_hidden", .place = &R::moe_ffn_hidden},
    {.name = "mla", .place = &R::mla},
    {.name = "tp", .place = &R::tp},
    {.name = "sp", .place = &R::sp},
    {.name = "pp", .place = &R::pp},
    {.name = "layers_per_virtual_stage", .place = &R::layers_per_virtual_stage},
    {.name = "virtual_stages", .place = &R::vpp},
    {.name = "cp", .place = &R::cp},
    {.name = "ep", .place = &R::ep},
    {.name = "etp", .place = &R::expert_tp},
    {.name = "distributed_optimizer", .place = &R::distributed_optimizer},
    {.name = "fsdp", .place = &R::fsdp},
    {.name = "micro_batch", .place = &R::micro_batch, .required = true},
    {.name = "global_batch_sequences", .place = &R::global_batch_sequences, .required = true},
    {.name = "recompute", .place = &R::recompute},
    {.name = "bf16", .place = &R::bf16},
    {.name = "fp16", .place = &R::fp16},
    {.name = "fp8", .place = &R::fp8_format},
    {.name = "transformer_impl", .place = &R::transformer_impl},
    {.name = "untied", .place = &R::untied},
    {.name = "iterations_recorded", .place = &R::iterations_recorded},
    {.name = "median_iteration_time_s", .place = &R::step_time_s},
    {.name = "mem_allocated_gib_end", .place = &R::mem_allocated_gib_end},
    {.name = "max_mem_allocated_gib", .place = &R::peak_memory_gb, .required = true},
});

constexpr std::array vtrain = std::to_array<MeasuredColumn>({
    {.name = "id", .place = &R::id, .required = true},
    {.name = "params_total_b", .place = &R::params_total, .scale = 1e9, .required = true},
    {.name = "gpu", .place = &R::gpu, .required = true},
    {.name = "gpus", .place = &R::gpus, .required = true},
    {.name = "gpus_per_node", .place = &R::gpus_per_node},
    {.name = "layers", .place = &R::layers, .required = true},
    {.name = "hidden", .place = &R::hidden, .required = true},
    {.name = "heads", .place = &R::heads, .required = true},
    {.name = "seq_len", .place = &R::seq_len, .required = true},
    {.name = "tp", .place = &R::tp, .required = true},
    {.name = "dp", .place = &R::dp, .required = true},
    {.name = "pp", .place = &R::pp, .required = true},
    {.name = "micro_batch", .place = &R::micro_batch, .required = true},
    {.name = "global_batch_sequences", .place = &R::global_batch_sequences, .required = true},
    {.name = "recompute", .place = &R::recompute},
    {.name = "schedule", .place = &R::schedule},
    {.name = "step_time_s_is_ms_over_1000", .place = &R::step_time_s, .required = true},
    {.name = "iteration_time_ms", .place = &R::iteration_time_ms},
});

template <std::size_t N, std::size_t M>
constexpr auto joined(const std::array<MeasuredColumn, N>& a,
                      const std::array<MeasuredColumn, M>& b) {
  std::array<MeasuredColumn, N + M> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = a[i];
  for (std::size_t i = 0; i < M; ++i) out[N + i] = b[i];
  return out;
}
constexpr auto all_training_runs = joined(training_runs, added);
// Their own columns already say swiglu and etp; those added beside them are the same once more, or
// spell defaults out.
constexpr auto all_functional_tests = joined(functional_tests, added);

}  // namespace

std::span<const MeasuredColumn> measured_columns(MeasuredSchema schema) {
  switch (schema) {
    case MeasuredSchema::training_runs:
      return all_training_runs;
    case MeasuredSchema::vtrain:
      return vtrain;
    case MeasuredSchema::functional_tests:
      return all_functional_tests;
  }
  CORE_ASSERT(false);
}

}  // namespace core

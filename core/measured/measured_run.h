#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace core {

// A training run as a source printed it: one row of a table of measurements. What the source does
// not state is empty ("" or nothing), never a default. Which tables have which columns:
// columns.cpp; what each means: data/measured/README.md.
struct MeasuredRun {
  using Count = std::optional<std::int64_t>;
  using Number = std::optional<double>;
  using Switch = std::optional<bool>;

  std::string table;  // file it was read from
  int line = 0;       // its line there

  std::string id, source_title, source_ref, notes, derived_columns;
  Count year;
  std::string framework, release;
  bool simulatable = true;     // "no": the source leaves something open that a prediction needs
  bool out_of_memory = false;  // status "oom" instead of "ok"

  // The model.
  std::string model_name, model_family;
  Number params_total, params_active;
  Count layers, hidden, heads, kv_heads, head_dim, ffn_hidden, vocab, padded_vocab, seq_len;
  Switch gated_mlp, tied_embeddings;
  std::string activation, norm, sliding_window;
  Number dropout;
  Count experts, top_k, moe_ffn_hidden, first_dense_layers, dense_ffn_hidden;
  Number shared_experts;  // in units of one routed expert
  std::string moe_capacity, moe_dispatcher;
  Count q_lora, kv_lora, qk_nope, qk_rope, v_dim, mtp_layers;

  // The machine.
  std::string gpu, interconnect;
  Count gpus, gpus_per_node, nvlink_domain;
  Number nic_gbps_per_gpu;  // Gb/s, one direction
  Count gpu_power_w;

  // The plan.
  Count tp, cp, pp, vpp, ep, dp, expert_tp, expert_dp;
  Switch sp;
  std::string cp_method, zero_stage_or_fsdp, schedule, pp_layout, recompute, recompute_modules;
  Count micro_batch, global_batch_sequences;  // sequences
  Switch fsdp_reshard_after_forward, overlap_grad_reduce, overlap_param_gather, tp_comm_overlap,
      ep_comm_overlap;

  // The numbers and kernels.
  std::string precision, optimizer, grad_dtype, main_params_dtype, optimizer_state_dtype;
  Switch fp8_params, expandable_segments;
  std::string attention_impl, attention_backend, cuda_graphs, cross_entropy_fusion;

  // What was measured.
  Number step_time_s, tokens_per_s_per_gpu, tflops_per_gpu_reported;
  std::string flops_convention, mfu_reported;
  Number peak_memory_gb;
  std::string memory_kind, logging_rank;

  // Only in the table of Megatron-LM's functional tests, under its arguments' names.
  std::string test_case, transformer_impl, fp8_format;
  Switch swiglu, mla, distributed_optimizer, fsdp, bf16, fp16, untied;
  Count layers_per_virtual_stage, iterations_recorded;
  Number mem_allocated_gib_end;
  // Only in logs: learned_absolute, rope or none; biases of linear layers; gradients that GEMMs add
  // to the sum themselves.
  std::string positions;
  Switch linear_bias, gradient_fusion;
  Count optimizer_instances;  // parts of the data-parallel ranks that each share out all optimizer states
  // Only in vTrain's tables: the same time once more.
  Number iteration_time_ms;
};

}  // namespace core

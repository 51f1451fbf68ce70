// A run's arguments in the words of tables of measured runs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/megatron.h"
#include "core/logs/tokenizers.h"

namespace core {

namespace {

class Arguments {
 public:
  explicit Arguments(const MegatronRun& run) : run_(run) {}

  std::string text(std::string_view name) const {
    const auto found = run_.arguments.find(std::string(name));
    return found == run_.arguments.end() ? std::string() : found->second;
  }
  bool has(std::string_view name) const { return !text(name).empty(); }
  bool on(std::string_view name) const { return text(name) == "True"; }
  MeasuredRun::Switch given(std::string_view name) const {
    return has(name) ? MeasuredRun::Switch(on(name)) : std::nullopt;
  }
  MeasuredRun::Count count(std::string_view name) const {
    const auto value = text(name);
    if (value.empty()) return std::nullopt;
    std::int64_t number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (read.ec != std::errc() || read.ptr != value.data() + value.size() || number < 0 ||
        number > (std::int64_t{1} << 40)) {
      complain(name, "a whole number of 0 or more");
    }
    return number;
  }
  MeasuredRun::Number number(std::string_view name) const {
    const auto value = text(name);
    if (value.empty()) return std::nullopt;
    double number = 0.0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (read.ec != std::errc() || read.ptr != value.data() + value.size() ||
        !(number >= 0.0 && number < 1e18))
      complain(name, "a number of 0 or more");
    return number;
  }
  [[noreturn]] void complain(std::string_view name, std::string_view expected) const {
    throw InputError(fmt::format("{}: argument {}: found \"{}\", expected {}",
                                 run_.name,
                                 name,
                                 printable(text(name)),
                                 expected));
  }

 private:
  const MegatronRun& run_;
};

MeasuredRun::Count vocabulary_of(const Arguments& a) {
  if (a.text("tokenizer_type") == "NullTokenizer") {
    const auto size = a.count("vocab_size");
    return size ? MeasuredRun::Count(*size + 1) : std::nullopt;
  }
  if (const auto size = a.count("vocab_size")) return size;
  const bool gpt2_files = !a.has("tokenizer_type") && a.has("vocab_file") && a.has("merge_file");
  if (gpt2_files) return tokenizer_vocabulary("GPT2BPETokenizer");
  const auto size = tokenizer_vocabulary(a.text("tokenizer_model"));
  return size ? size : tokenizer_vocabulary(a.text("tokenizer_type"));
}

void take_vocabulary(const Arguments& a, MeasuredRun& row) {
  row.padded_vocab = a.count("padded_vocab_size");
  row.vocab = vocabulary_of(a);
  if (row.padded_vocab || !row.vocab) return;
  const auto multiple = a.count("make_vocab_size_divisible_by").value_or(128) * row.tp.value_or(1);
  if (multiple > 0 && multiple < (std::int64_t{1} << 30))
    row.padded_vocab = (*row.vocab + multiple - 1) / multiple * multiple;
}

void take_model(const Arguments& a, MeasuredRun& row) {
  row.layers = a.count("num_layers"), row.hidden = a.count("hidden_size"),
  row.heads = a.count("num_attention_heads");
  row.ffn_hidden = a.count("ffn_hidden_size"), row.head_dim = a.count("kv_channels"),
  row.seq_len = a.count("seq_length");
  if (a.on("group_query_attention")) row.kv_heads = a.count("num_query_groups");
  row.gated_mlp = a.on("swiglu");
  row.activation = a.on("swiglu") ? "swiglu" : a.on("squared_relu") ? "squared_relu" : "gelu";
  row.norm = a.text("normalization") == "RMSNorm" ? "rmsnorm" : "layernorm";
  row.tied_embeddings = !a.on("untie_embeddings_and_output_weights");
  row.positions = a.text("position_embedding_type");
  row.linear_bias = !a.on("disable_bias_linear") && a.text("add_bias_linear") != "False";
  row.dropout = a.number("hidden_dropout");
  row.mtp_layers = a.count("mtp_num_layers").value_or(0);
}

// "([0]*3+[1]*58)": dense layers first; a number n: every n-th layer has experts.
void take_first_dense(const Arguments& a, MeasuredRun& row) {
  const auto frequency = a.text("moe_layer_freq");
  if (frequency.empty() || frequency == "1") return;
  constexpr std::string_view start = "([0]*";
  std::int64_t dense = 0;
  const auto read =
      frequency.starts_with(start)
          ? std::from_chars(
                frequency.data() + start.size(), frequency.data() + frequency.size(), dense)
          : std::from_chars_result{frequency.data(), std::errc::invalid_argument};
  if (read.ec != std::errc() ||
      !std::string_view(read.ptr,
                        static_cast<std::size_t>(frequency.data() + frequency.size() - read.ptr))
           .starts_with("+[1]*")) {
    a.complain("moe_layer_freq", "1, or dense layers first such as ([0]*3+[1]*58)");
  }
  row.first_dense_layers = dense;
}

void take_experts(const Arguments& a, MeasuredRun& row) {
  row.experts = a.count("num_experts");
  if (!row.experts) return;
  row.top_k = a.count("moe_router_topk").value_or(2);
  row.moe_ffn_hidden = a.count("moe_ffn_hidden_size");
  row.dense_ffn_hidden = row.ffn_hidden;
  take_first_dense(a, row);
  const auto shared = a.count("moe_shared_expert_intermediate_size"),
             each = row.moe_ffn_hidden ? row.moe_ffn_hidden : row.ffn_hidden;
  if (shared && each && *each > 0)
    row.shared_experts = static_cast<double>(*shared) / static_cast<double>(*each);
  const auto type = a.text("moe_token_dispatcher_type");
  row.moe_dispatcher = type == "flex" ? (a.text("moe_flex_dispatcher_backend").empty()
                                             ? "deepep"
                                             : a.text("moe_flex_dispatcher_backend"))
                       : type.empty() ? "allgather"
                                      : type;
  row.expert_tp = a.count("expert_tensor_parallel_size");
}

void take_latent(const Arguments& a, MeasuredRun& row) {
  if (!a.on("multi_latent_attention")) return;
  row.mla = true;
  row.q_lora = a.count("q_lora_rank").value_or(0),
  row.kv_lora = a.count("kv_lora_rank").value_or(32);
  row.qk_nope = a.count("qk_head_dim").value_or(128),
  row.qk_rope = a.count("qk_pos_emb_head_dim").value_or(64);
  row.v_dim = a.count("v_head_dim").value_or(128);
}

void take_degrees(const Arguments& a, MeasuredRun& row) {
  row.tp = a.count("tensor_model_parallel_size"), row.pp = a.count("pipeline_model_parallel_size");
  row.cp = a.count("context_parallel_size"), row.ep = a.count("expert_model_parallel_size");
  row.vpp = a.count("virtual_pipeline_model_parallel_size");
  if (!row.vpp) row.vpp = a.count("num_virtual_stages_per_pipeline_rank");
  row.layers_per_virtual_stage =
      row.vpp ? std::nullopt : a.count("num_layers_per_virtual_pipeline_stage");
  row.pp_layout = a.text("pipeline_model_parallel_layout");
  row.sp = a.on("sequence_parallel");
  row.micro_batch = a.count("micro_batch_size"),
  row.global_batch_sequences = a.count("global_batch_size");
  row.fsdp = a.on("use_megatron_fsdp") || a.on("use_torch_fsdp2") || a.text("zero_stage") == "3";
  row.optimizer_instances = a.count("num_distributed_optimizer_instances");
  row.distributed_optimizer = a.on("use_distributed_optimizer") || a.text("zero_stage") == "1";
}

void take_recompute(const Arguments& a, MeasuredRun& row) {
  const auto granularity = a.text("recompute_granularity");
  if (a.on("checkpoint_activations") || granularity == "full") {
    row.recompute = a.text("recompute_method") == "block"
                        ? fmt::format("full(block,{} layers)", a.text("recompute_num_layers"))
                        : "full";
  } else if (granularity == "selective") {
    auto modules = a.text("recompute_modules");
    std::erase_if(modules, [](char c) { return c == '[' || c == ']' || c == '\'' || c == ','; });
    std::replace(modules.begin(), modules.end(), ' ', '+');
    row.recompute = "selective", row.recompute_modules = modules;
  } else {
    row.recompute = "none";
  }
}

void take_kernels(const Arguments& a, MeasuredRun& row) {
  const bool modern = a.has("transformer_impl") || a.has("use_mcore_models");
  row.transformer_impl = a.text("transformer_impl");
  row.attention_backend = a.on("use_flash_attn")       ? "flash"
                          : !modern                    ? "unfused"
                          : a.has("attention_backend") ? a.text("attention_backend")
                                                       : "auto";
  if (row.attention_backend == "fused") row.attention_backend = "fused-cudnn";
  if (row.attention_backend == "local" || row.transformer_impl == "local")
    row.attention_backend = "unfused";
  row.cross_entropy_fusion = !a.on("cross_entropy_loss_fusion") ? "none"
                             : a.has("cross_entropy_fusion_impl")
                                 ? a.text("cross_entropy_fusion_impl")
                                 : "native";
  row.cuda_graphs = a.has("cuda_graph_impl") && a.text("cuda_graph_impl") != "none"
                        ? "transformer_engine"
                        : "none";
  row.overlap_grad_reduce = a.on("overlap_grad_reduce"),
  row.overlap_param_gather = a.on("overlap_param_gather");
  row.tp_comm_overlap = a.on("tp_comm_overlap"),
  row.ep_comm_overlap = a.on("overlap_moe_expert_parallel_comm");
  row.gradient_fusion =
      a.text("gradient_accumulation_fusion") != "False" && !a.on("no_gradient_accumulation_fusion");
  if (!modern) row.year = 2021;
}

void take_numbers(const Arguments& a, MeasuredRun& row) {
  row.bf16 = a.on("bf16"), row.fp16 = a.on("fp16");
  row.fp8_format = a.has("fp8_format") ? a.text("fp8_format") : a.text("fp8");
  row.fp8_params = a.given("fp8_param_gather");
  if (a.on("grad_reduce_in_bf16")) row.grad_dtype = "bf16";
  row.optimizer = a.has("optimizer") ? a.text("optimizer") : "adam";
}

double median_after_warm_up(std::vector<double> times) {
  times.erase(times.begin(), times.begin() + std::ssize(times) / 4);
  std::sort(times.begin(), times.end());
  const auto middle = times.size() / 2;
  return times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2.0;
}

// Batches grow at the start of some runs: that of the last iteration counts.
void take_steps(const MegatronRun& run, MeasuredRun& row) {
  if (run.step_s.empty()) return;
  std::vector<double> times;
  const double last = run.batches.empty() ? 0.0 : run.batches.back();
  for (std::size_t i = 0; i < run.step_s.size(); ++i) {
    if (run.batches.empty() || run.batches[i] == last) times.push_back(run.step_s[i]);
  }
  if (last >= 1.0 && last < 1e12) row.global_batch_sequences = static_cast<std::int64_t>(last);
  row.step_time_s = median_after_warm_up(std::move(times));
}

// The file's name, and of a test its folder's, which names the test.
std::string short_name(const MegatronRun& run) {
  const std::filesystem::path path(run.name);
  const auto file = path.filename().string();
  return run.last_rank ? path.parent_path().filename().string() + "/" + file : file;
}

}  // namespace

MeasuredRun measured_run_of(const MegatronRun& run, const MegatronMachine& machine) {
  const Arguments a(run);
  if (a.has("hybrid_layer_pattern") || a.has("hybrid_override_pattern") ||
      a.on("is_hybrid_model")) {
    throw InputError(fmt::format(
        "{}: a hybrid of attention and state-space layers, expected attention in all layers",
        run.name));
  }
  if (a.on("fine_grained_activation_offloading")) {
    throw InputError(fmt::format(
        "{}: activations of parts of a layer are offloaded, which a plan cannot say", run.name));
  }
  MeasuredRun row;
  row.table = row.id = run.name;
  row.test_case = short_name(run);
  row.framework = a.has("zero_stage") || a.on("deepspeed") ? "Megatron-DeepSpeed" : "Megatron-LM";
  row.gpu = machine.gpu, row.gpus_per_node = machine.gpus_per_node;
  row.gpus = machine.gpus ? machine.gpus : a.count("world_size");
  if (!row.gpus)
    throw InputError(
        fmt::format("{}: the number of GPUs is not in its arguments, expected --gpus", run.name));
  take_degrees(a, row);
  take_model(a, row);
  take_experts(a, row);
  take_latent(a, row);
  take_vocabulary(a, row);
  take_recompute(a, row);
  take_kernels(a, row);
  take_numbers(a, row);
  take_steps(run, row);
  row.mem_allocated_gib_end = run.allocated_GiB, row.peak_memory_gb = run.peak_GiB;
  row.logging_rank = run.last_rank ? "last" : "";
  return row;
}

}  // namespace core

#include "simulator/check/plan_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "core/error.h"
#include "core/io/document.h"
#include "core/recipe.h"
#include "simulator/check/software.h"

namespace simulator {

namespace {

using core::MeasuredRun;
using core::ParallelPlan;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
bool has_experts(const MeasuredRun& run) { return run.experts.value_or(0) > 0; }

constexpr std::int64_t most_ranks = 1 << 14, most_sequences = 1 << 24;

std::int64_t degree(const MeasuredRun::Count& value,
                    std::string_view name,
                    std::int64_t most = most_ranks) {
  if (value && (*value < 1 || *value > most))
    throw core::InputError(fmt::format("{} {}: expected 1 to {}", name, *value, most));
  return value.value_or(1);
}

bool lists_stages(const MeasuredRun& run) {
  return !run.pp_layout.empty() && !run.pp_layout.starts_with("first stage");
}

// Stated, or what layers a virtual stage or a layout amount to.
std::int64_t virtual_stages_of(const MeasuredRun& run, std::int64_t pp) {
  if (run.vpp) return degree(run.vpp, "vpp");
  if (lists_stages(run)) {
    const auto stages = std::ssize(layers_of_layout(run.pp_layout));
    if (stages % pp != 0)
      throw core::InputError(
          fmt::format("pp_layout lists {} stages, which pp={} does not divide", stages, pp));
    return stages / pp;
  }
  const auto each = degree(run.layers_per_virtual_stage, "layers_per_virtual_stage") * pp;
  if (!run.layers_per_virtual_stage) return 1;
  if (*run.layers % each != 0) {
    throw core::InputError(fmt::format(
        "{} layers do not divide by pp={} and {} a virtual stage", *run.layers, pp, each / pp));
  }
  return *run.layers / each;
}

void take_degrees(const MeasuredRun& run, ParallelPlan& plan, Notes& notes) {
  plan.tp = degree(run.tp, "tp"), plan.cp = degree(run.cp, "cp"), plan.pp = degree(run.pp, "pp");
  plan.vpp = virtual_stages_of(run, plan.pp), plan.ep = degree(run.ep, "ep");
  const auto others = plan.tp * plan.cp * plan.pp;
  if (!run.dp && *run.gpus % others != 0) {
    throw core::InputError(
        fmt::format("{} GPUs do not divide by tp x cp x pp = {}", *run.gpus, others));
  }
  plan.dp = run.dp ? degree(run.dp, "dp") : *run.gpus / others;
  if (plan.gpus() != *run.gpus) {
    throw core::InputError(
        fmt::format("tp x cp x pp x dp is {}, not the {} GPUs of the row", plan.gpus(), *run.gpus));
  }
  plan.sp = run.sp.value_or(false);
  if (!run.sp && plan.tp > 1 && has_experts(run)) {
    plan.sp = true;
    notes.assume("sequence parallel, which experts under tensor parallel need");
  }
  if (plan.tp == 1) plan.sp = false;
  if (!has_experts(run)) return;
  plan.etp = run.expert_tp                      ? degree(run.expert_tp, "expert_tp")
             : stack_of(run) == Stack::megatron ? plan.tp
                                                : 1;
}

void take_batch(const MeasuredRun& run, ParallelPlan& plan, Notes& notes) {
  if (!run.micro_batch) throw core::InputError("micro_batch is not stated");
  plan.micro_batch = degree(run.micro_batch, "micro_batch", most_sequences);
  if (run.global_batch_sequences) {
    plan.global_batch =
        degree(run.global_batch_sequences, "global_batch_sequences", most_sequences);
  } else {
    plan.global_batch = plan.micro_batch * plan.dp;
    notes.assume(
        fmt::format("a batch of one micro-batch a data-parallel rank: {}", plan.global_batch));
  }
  if (plan.global_batch % (plan.micro_batch * plan.dp) != 0) {
    throw core::InputError(fmt::format("batch {} does not divide by micro-batch {} x dp {}",
                                       plan.global_batch,
                                       plan.micro_batch,
                                       plan.dp));
  }
}

void take_context(const MeasuredRun& run, ParallelPlan& plan) {
  if (plan.cp == 1 || run.cp_method.empty() || run.cp_method == "p2p") return;
  if (run.cp_method == "a2a")
    plan.cp_kind = core::ContextParallel::ulysses;
  else if (run.cp_method == "allgather")
    plan.cp_kind = core::ContextParallel::all_gather;
  else
    throw core::InputError(
        fmt::format("cp_method {}: expected p2p, a2a or allgather", run.cp_method));
}

// Number right after a word such as "FSDP=" or "shard group ".
std::optional<std::int64_t> number_after(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t value = 0;
  const auto read =
      std::from_chars(text.data() + at + word.size(), text.data() + text.size(), value);
  if (read.ec != std::errc() || value < 1) return std::nullopt;
  return value;
}

// Stacks that shard over data and context parallel ranks together print the data-parallel ones.
void take_shard_group(std::int64_t group, ParallelPlan& plan) {
  if (group == plan.replicas() || group == plan.dp) return;
  plan.shard = {group, group, group};
}

// Several instances of the distributed optimizer: each part of the replicas has all states. A functional test says so in its
// name alone.
void take_instances(const MeasuredRun& run, ParallelPlan& plan, Notes& notes) {
  auto instances = run.optimizer_instances.value_or(1);
  if (!run.optimizer_instances && contains(run.test_case, "multi_dist_optimizer_instances")) {
    instances = 2;
    notes.assume("two instances of the distributed optimizer");
  }
  if (instances <= 1 || plan.zero != 1) return;
  if (plan.replicas() % instances != 0) {
    throw core::InputError(
        fmt::format("{} optimizer instances do not divide {} replicas", instances, plan.replicas()));
  }
  plan.shard.optimizer = plan.replicas() / instances;
  if (!has_experts(run)) return;
  plan.expert_zero = 1;
  plan.expert_shard.optimizer = std::max<std::int64_t>(1, plan.expert_replicas() / instances);
}

void take_sharding(const MeasuredRun& run, ParallelPlan& plan, Notes& notes) {
  const std::string& text = run.zero_stage_or_fsdp;
  if (run.iteration_time_ms) return;  // said with the precision
  if (!run.test_case.empty()) {
    plan.zero = run.fsdp.value_or(false) ? 3 : run.distributed_optimizer.value_or(false) ? 1 : 0;
  } else if (text.empty()) {
    notes.assume("optimizer states not shared out (zero=0)");
  } else if (text == "none") {
    plan.zero = 0;
  } else if (contains(text, "zero3") || contains(text, "FULL_SHARD") ||
             contains(text, "full shard") || contains(text, "megatron-fsdp") ||
             text.starts_with("fsdp2")) {
    plan.zero = 3;
  } else if (contains(text, "zero2")) {
    plan.zero = 2;
  } else if (contains(text, "zero1")) {
    plan.zero = 1;
  } else {
    throw core::InputError(
        fmt::format("zero_stage_or_fsdp {}: says neither a stage of ZeRO nor full sharding", text));
  }
  if (plan.zero == 3 && !run.fsdp_reshard_after_forward.value_or(true)) {
    plan.zero = 2;
    notes.assume("weights kept after the forward are those of zero=2");
  }
  take_instances(run, plan, notes);
  if (const auto group = number_after(text, "FSDP=")) take_shard_group(*group, plan);
  if (const auto group = number_after(text, "shard group ")) take_shard_group(*group, plan);
  if (contains(text, "opt-offload")) plan.offload.optimizer = true;
  if (contains(text, "cpu-offload")) plan.offload.optimizer = plan.offload.weights = true;
  if (contains(text, "cpu adam offload")) plan.offload.optimizer = true;
}

struct ModuleName {
  std::string_view source;
  core::Modules module;
};
constexpr std::array module_names = std::to_array<ModuleName>({
    {"core attention", core::modules::core_attention},
    {"core_attn", core::modules::core_attention},
    {"layernorm", core::modules::norm},
    {"moe_act", core::modules::activation},
    {"mla_up_proj", core::modules::mla_up},
    {"mlp", core::modules::mlp},
    {"moe", core::modules::moe},
});

core::Modules modules_named(std::string_view text) {
  core::Modules set = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of("+ "), text.size());
    const auto word = text.starts_with("core attention") ? text.substr(0, 14) : text.substr(0, end);
    const auto found = std::find_if(module_names.begin(),
                                    module_names.end(),
                                    [&](const ModuleName& m) { return m.source == word; });
    if (found == module_names.end())
      throw core::InputError(
          fmt::format("recompute: module {} is not known", core::printable(word)));
    set |= found->module;
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return set;
}

// The words between the outermost brackets: "selective([moe_act])" has moe_act.
std::string_view inner(std::string_view text) {
  const auto first = text.find_first_of("([");
  if (first == std::string_view::npos) return {};
  text.remove_prefix(first);
  while (!text.empty() && (text.front() == '(' || text.front() == '[')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ')' || text.back() == ']')) text.remove_suffix(1);
  return text;
}

void take_recompute(const MeasuredRun& run, ParallelPlan& plan, Notes& notes) {
  const std::string& text = run.recompute;
  if (text.empty() && run.test_case.empty()) throw core::InputError("recompute is not stated");
  if (text.empty() || text == "none") return;
  if (text.starts_with("full")) {
    plan.recompute = core::Recompute::full;
    if (const auto layers = number_after(text, "block,")) plan.recompute_layers = *layers;
    return;
  }
  if (!text.starts_with("selective"))
    throw core::InputError(fmt::format("recompute {}: expected none, full or selective", text));
  if (contains(text, "torchtitan")) {
    // Keeps outputs of every second GEMM and of attention, and makes the rest anew.
    plan.recompute = core::Recompute::modules;
    plan.recompute_modules = core::modules::norm | core::modules::activation;
    notes.assume("torchtitan's selective recompute is norms and activations");
    notes.ignore("every second GEMM that torchtitan's selective recompute repeats");
    return;
  }
  const auto words =
      run.recompute_modules.empty() ? inner(text) : std::string_view(run.recompute_modules);
  const auto set = words.empty() ? core::modules::core_attention : modules_named(words);
  plan.recompute =
      set == core::modules::core_attention ? core::Recompute::selective : core::Recompute::modules;
  plan.recompute_modules = plan.recompute == core::Recompute::selective ? 0 : set;
}

void take_schedule(const MeasuredRun& run, ParallelPlan& plan, Notes& notes) {
  const bool pairs = run.ep_comm_overlap.value_or(false) && plan.ep > 1;
  const std::string& text = run.schedule;
  if (text == "zbb")
    plan.schedule = "zb-h2";
  else if (text == "zbv-formatted")
    plan.schedule = "zb-v";
  else if (text == "v-half" || text == "v-min" || text == "dualpipe")
    plan.schedule = text;
  else if (text.empty() || contains(text, "1f1b")) {
    const bool interleaved = plan.vpp > 1 && plan.pp > 1;
    if (plan.pp == 1 && plan.vpp > 1) {
      notes.ignore("virtual stages without a pipeline");
      plan.vpp = 1;
    }
    plan.schedule = interleaved ? (pairs ? "interleaved-a2a" : "interleaved")
                    : pairs     ? "1f1b-a2a"
                                : "1f1b";
  } else {
    throw core::InputError(fmt::format("schedule {}: not known", text));
  }
}

// The others share out the rest evenly; where it does not divide, the last stage has as few layers
// as the first.
void take_first_stage(const MeasuredRun& run,
                      std::int64_t layers,
                      std::int64_t first,
                      ParallelPlan& plan,
                      Notes& notes) {
  const auto stages = plan.stages();
  const bool both = stages > 1 && (layers - first) % (stages - 1) != 0;
  const auto others = stages - (both ? 2 : 1), left = layers - first * (both ? 2 : 1);
  if (others < 1 || left < 0 || left % others != 0) {
    throw core::InputError(fmt::format(
        "pp_layout {}: {} layers do not divide so over {} stages", run.pp_layout, layers, stages));
  }
  if (both) notes.assume(fmt::format("a last stage of {} layers, as the first", first));
  plan.layout = core::Layout::given;
  plan.layers.assign(static_cast<std::size_t>(stages), left / others);
  plan.layers.front() = first;
  if (both) plan.layers.back() = first;
}

// Without a layout, layers that do not divide leave a slot for the embedding and one for the loss
// (Megatron-Core, account_for_embedding_in_pipeline_split and its kin for the loss).
void take_layout(const MeasuredRun& run,
                 const core::ModelSpec& model,
                 ParallelPlan& plan,
                 Notes& notes) {
  const auto layers = model.layers();
  if (const auto first = number_after(run.pp_layout, "first stage ")) {
    take_first_stage(run, layers, *first, plan, notes);
  } else if (!run.pp_layout.empty()) {
    plan.layout = core::Layout::given;
    plan.layers = layers_of_layout(run.pp_layout);
  } else if (layers % plan.stages() == 0) {
    plan.layout = core::Layout::even;
  } else {
    plan.layout = core::Layout::slots;
    if ((layers + 2) % plan.stages() != 0) {
      notes.assume(fmt::format(
          "{} layers, embedding and output shared out over {} stages as evenly as they divide",
          layers,
          plan.stages()));
    }
  }
}

void take_overlap(const MeasuredRun& run, ParallelPlan& plan, Notes& notes) {
  const bool stated = run.overlap_grad_reduce.has_value() || run.overlap_param_gather.has_value();
  const bool otherwise = overlaps_by_default(run);
  if (!stated && plan.replicas() > 1) {
    notes.assume(otherwise ? "data-parallel communication beside compute"
                           : "no data-parallel communication beside compute");
  }
  plan.overlap_gradients = run.overlap_grad_reduce.value_or(otherwise);
  plan.overlap_parameters = run.overlap_param_gather.value_or(otherwise);
  plan.overlap_tensor = run.tp_comm_overlap.value_or(false) && plan.tp > 1;
}

void take_experts(const MeasuredRun& run, ParallelPlan& plan, Notes& notes) {
  if (!has_experts(run)) return;
  const std::string& dispatcher = run.moe_dispatcher;
  if (dispatcher == "deepep" || dispatcher == "hybridep")
    plan.dispatch = core::Dispatch::one_sided;
  else if (dispatcher == "allgather")
    notes.ignore("dispatch by all-gather; taken for an all-to-all");
  else if (dispatcher.empty())
    notes.assume("dispatch by NCCL's all-to-all");
  else if (dispatcher != "alltoall")
    throw core::InputError(fmt::format("moe_dispatcher {}: not known", dispatcher));
}

void take_loss(const MeasuredRun& run, ParallelPlan& plan, Notes& notes) {
  const std::string& fusion = run.cross_entropy_fusion;
  if (fuses_loss(run)) {
    plan.loss = core::Loss::fused;
  } else if (fusion == "linear+loss") {
    plan.loss = core::Loss::linear;
  } else if (fusion.empty()) {
    notes.assume("an unfused loss");
  } else if (fusion != "none" && fusion != "native") {
    throw core::InputError(fmt::format("cross_entropy_fusion {}: not known", fusion));
  }
}

void take_graphs(const MeasuredRun& run, ParallelPlan& plan, Notes& notes) {
  const std::string& graphs = run.cuda_graphs;
  if (graphs.empty() || graphs == "none") return;
  const bool all = graphs == "full_iteration" || graphs == "per-layer" || graphs == "transformer_engine";
  const bool attention = contains(graphs, "attn"), router = contains(graphs, "moe_router");
  using core::CudaGraphs;
  if (all || (attention && run.experts.value_or(0) == 0)) plan.graphs = CudaGraphs::layers;
  else if (attention) plan.graphs = router ? CudaGraphs::attention_router : CudaGraphs::attention;
  else if (router) plan.graphs = CudaGraphs::router;
  if (plan.graphs == CudaGraphs::none)
    notes.ignore(fmt::format("CUDA graphs of parts of a layer: {}", graphs));
  else if (graphs != "per-layer")
    notes.assume(fmt::format("CUDA graphs {} are graphs={}", graphs, core::name_of(plan.graphs)));
}

}  // namespace

ParallelPlan plan_of(const MeasuredRun& run,
                     const core::ModelSpec& model,
                     const core::Recipe& recipe,
                     Notes& notes) {
  ParallelPlan plan;
  plan.recipe = recipe.name;
  take_degrees(run, plan, notes);
  take_batch(run, plan, notes);
  take_context(run, plan);
  take_sharding(run, plan, notes);
  take_recompute(run, plan, notes);
  take_schedule(run, plan, notes);
  take_layout(run, model, plan, notes);
  take_overlap(run, plan, notes);
  take_experts(run, plan, notes);
  take_loss(run, plan, notes);
  take_graphs(run, plan, notes);
  return plan;
}

}  // namespace simulator

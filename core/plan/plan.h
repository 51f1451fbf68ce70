#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model.h"

namespace core {

// Parts of a layer that recompute can repeat by themselves, as Megatron-LM's --recompute-modules; a set of them.
using Modules = std::uint32_t;
namespace modules {
inline constexpr Modules core_attention = 1;  // what grows with the square of the sequence
inline constexpr Modules norm = 2;            // outputs of norms
inline constexpr Modules activation = 4;      // outputs of activation functions, of experts too
inline constexpr Modules mla_up = 8;          // up-projected keys and values of latent attention
inline constexpr Modules mlp = 16;            // whole dense feed-forward blocks
inline constexpr Modules moe = 32;            // whole expert blocks, their all-to-alls included
}  // namespace modules
// "core_attention+norm"; "none" for the empty set.
std::string modules_text(Modules set);

enum class Recompute : std::uint8_t { none, selective, full, modules };
std::string_view name_of(Recompute recompute);

// How the layers are shared out over the pp * vpp virtual stages.
//   even:  the same number each; the embedding and the output come on top of the first and last
//   slots: the embedding and the output count as one layer each, remainders go to later middle stages
//   given: as listed
enum class Layout : std::uint8_t { even, slots, given };

// How ranks of a context-parallel group see each other's keys and values (core/graph/core_attention.h).
enum class ContextParallel : std::uint8_t { ring, all_gather, ulysses };
std::string_view name_of(ContextParallel kind);  // "ring", "all-gather", "ulysses"

// How many ranks of the data-parallel group share out each state: nothing = all of them. A state that ZeRO's level does not
// share is whole on each rank. Group sizes grow from parameters to optimizer states (PaRO, arXiv 2310.06003).
struct ShardGroups {
  std::optional<std::int64_t> parameters, gradients, optimizer;
  bool operator==(const ShardGroups&) const = default;
};

// What is kept in host memory and copied when it is needed.
struct Offload {
  bool optimizer = false, weights = false, activations = false;
  bool any() const { return optimizer || weights || activations; }
  bool operator==(const Offload&) const = default;
};

// How experts' tokens travel: NCCL's all-to-all, or one-sided copies (DeepEP, NVSHMEM) that take fewer SMs and less latency.
enum class Dispatch : std::uint8_t { nccl, one_sided };
// How gathers and scatters of sharded states pass groups that have several ranks in each of several nodes: flat, one ring
// through all (NCCL); hierarchical, between nodes and then inside them (ZeRO++, arXiv 2306.10209); overlapping, both at once
// (PaRO, arXiv 2310.06003).
enum class Collectives : std::uint8_t { flat, hierarchical, overlapping };
inline constexpr std::size_t collectives_kinds = 3;
std::string_view name_of(Collectives collectives);

// The loss: unfused keeps the logits in fp32; fused keeps them in 16 bits and rereads them; linear never forms them whole
// (fused linear cross-entropy).
enum class Loss : std::uint8_t { unfused, fused, linear };
// What CUDA graphs cover: with them the host launches a layer at once, or of a layer with experts what comes before them
// (attention, with its norms), the router with what prepares the dispatch, or both.
enum class CudaGraphs : std::uint8_t { none, layers, attention, router, attention_router };
std::string_view name_of(CudaGraphs graphs);  // "none", "layers", "attention", "router", "attention+router"

// A complete parallel plan (level 1 of the representation). Ranks are numbered with tensor parallel fastest, then context,
// data and pipeline parallel (Megatron's order tp-cp-dp-pp). Experts share the tp * cp * dp ranks of a stage out anew:
// expert tensor parallel fastest, then expert parallel, then expert data parallel.
//
// Text form, every key once, in any order; what is not said takes the value shown:
//   tp=1 sp cp=1 pp=1x1 ep=1 etp=1 dp=1 zero=0 mb=1 gbs=1 schedule=1f1b recompute=none
//   layers=even overlap=both offload=none recipe=bf16
// pp=4x2 is 4 ranks with 2 virtual stages each; cp=4:ulysses says how (ring, all-gather, ulysses; :unbalanced after it);
// recompute=full:3 recomputes the first 3 layers of each virtual stage, recompute=norm+activation some modules of each layer;
// layers=7/8/8/7 lists them; overlap is both, gradients, parameters or none, and tensor and experts joined with +;
// shard=p:8,g:8,o:all gives the groups of the states that are shared out (none, node, all or a number of ranks), and
// expert-shard those of the experts; offload joins optimizer, weights and activations with +.
// Said only where not the default: dispatch=one-sided, collectives=hierarchical|overlapping, reduce=runs, loss=fused|linear,
// graphs=layers, sync=post.
struct ParallelPlan {
  std::int64_t tp = 1;
  bool sp = false;
  std::int64_t cp = 1;
  ContextParallel cp_kind = ContextParallel::ring;
  bool cp_balanced = true;
  std::int64_t pp = 1, vpp = 1;
  std::int64_t ep = 1, etp = 1;
  std::int64_t dp = 1;
  int zero = 0;  // 0 none, 1 optimizer states, 2 and gradients, 3 and parameters, over the data-parallel group
  ShardGroups shard;
  std::optional<int> expert_zero;  // of routed experts' states; nothing = as the others'
  ShardGroups expert_shard;
  std::int64_t micro_batch = 1, global_batch = 1;
  std::string schedule = "1f1b";
  Recompute recompute = Recompute::none;
  std::int64_t recompute_layers = 0;  // full only: layers of each virtual stage, 0 = all
  Modules recompute_modules = 0;      // modules only
  Layout layout = Layout::even;
  std::vector<std::int64_t> layers;  // layout given: layers of each virtual stage
  bool overlap_gradients = true, overlap_parameters = true;
  bool overlap_tensor = false;   // tensor-parallel collectives beside the GEMMs they belong to, in parts
  bool overlap_experts = false;  // experts' all-to-alls beside the shared expert
  Offload offload;
  Dispatch dispatch = Dispatch::nccl;
  Collectives collectives = Collectives::flat;
  // Sharded gradients are reduced once for a run of consecutive micro-batches of a stage on its rank, not after each, and kept
  // whole through the run (Llama 3, arXiv 2407.21783, section 3.3.2).
  bool reduce_runs = false;
  Loss loss = Loss::unfused;
  CudaGraphs graphs = CudaGraphs::none;
  bool post_validation = false;  // the optimizer does not wait for the global gradient norm (arXiv 2401.10241, section 4)
  std::string recipe = "bf16";

  std::int64_t gpus() const { return tp * cp * pp * dp; }
  std::int64_t stages() const { return pp * vpp; }
  // Ranks of a stage, and those that hold the same part of the dense states, of experts' states.
  std::int64_t ranks_of_stage() const { return tp * cp * dp; }
  std::int64_t replicas() const { return cp * dp; }
  std::int64_t expert_replicas() const { return tp * cp * dp / (ep * etp); }
  int zero_of_experts() const { return expert_zero.value_or(zero); }
  // Micro-batches a pipeline runs in a step. Requires micro_batch * dp to divide global_batch.
  std::int64_t micro_batches() const { return global_batch / (micro_batch * dp); }
  // Recompute of the i-th layer of a virtual stage, and of what follows the output layer: none where layers are counted.
  Recompute recompute_of_layer(std::int64_t i) const {
    const bool counted = recompute == Recompute::full && recompute_layers > 0;
    return counted && i >= recompute_layers ? Recompute::none : recompute;
  }
  Recompute recompute_after_output() const { return recompute_layers > 0 ? Recompute::none : recompute; }
  // The modules that recompute repeats in a layer; full recompute repeats all of it.
  Modules modules_of(Recompute kind) const {
    return kind == Recompute::selective ? modules::core_attention : kind == Recompute::modules ? recompute_modules : 0;
  }
  bool operator==(const ParallelPlan&) const = default;
};

std::string to_text(const ParallelPlan& plan);
std::string offload_text(const Offload& offload);  // "optimizer+weights", "none"

// What a plan text left open, for the caller to fill with what it knows.
struct PlanText {
  ParallelPlan plan;
  bool has_dp = false, has_global_batch = false, has_zero = false, has_layout = false, has_recipe = false,
       has_schedule = false;
  // Groups given as "node": its size is the machine's.
  struct Nodes {
    bool parameters = false, gradients = false, optimizer = false;
  } node, expert_node;
  std::vector<std::string> keys;  // as given; pp=4x2 gives pp and vpp
  bool has(std::string_view key) const;
};

// Reads the text form. Throws InputError: `what: key: found ..., expected ...` with the nearest known key for a
// misspelt one. `what` names the source, for example "--plan".
PlanText parse_plan(std::string_view text, std::string_view what);

// Reads the text form and fills what it leaves open: dp from `gpus`, zero=1 where states can be shared, the layout from the
// model (even where layers divide, else slots), schedule from pp and vpp, groups of a node from its GPUs.
ParallelPlan complete_plan(const PlanText& text, const ModelSpec& model, std::int64_t gpus, std::int64_t global_batch,
                           std::int64_t gpus_per_node = 8);

// The part of it that depends on the degrees alone: groups given as "node" become a number of ranks of `plan`, groups of all
// replicas "all". Groups that are in `plan` are those of the text.
void complete_groups(const PlanText& text, std::int64_t gpus_per_node, ParallelPlan& plan);

// Layers of each virtual stage, in model order; sums to the model's layers. Requires a legal layout.
std::vector<std::int64_t> layers_of_stages(const ParallelPlan& plan, std::int64_t layers);

// Why the plan cannot run, one sentence that names both numbers ("24 heads do not divide by tp=16"), or nothing.
std::optional<std::string> why_not(const ModelSpec& model, const ParallelPlan& plan, std::int64_t gpus, std::int64_t seq);

// Settings that are legal and do nothing ("sp does nothing at tp=1"); where the GPUs of a node are known, those too that do
// nothing there.
std::vector<std::string> notes_on(const ParallelPlan& plan, std::optional<std::int64_t> gpus_per_node = {});

}  // namespace core

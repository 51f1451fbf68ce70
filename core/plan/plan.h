#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model.h"

namespace core {

enum class Recompute : std::uint8_t { none, selective, full };
std::string_view name_of(Recompute recompute);

// How the layers are shared out over the pp * vpp virtual stages.
//   even:  the same number each; the embedding and the output come on top of the first and last
//   slots: the embedding and the output count as one layer each, remainders go to later middle stages
//   given: as listed
enum class Layout : std::uint8_t { even, slots, given };

// A complete parallel plan (level 1 of the representation). Ranks are numbered with tensor parallel fastest, then data
// parallel, then pipeline (Megatron's order tp-dp-pp).
//
// Text form, every key once, in any order; what is not said takes the value shown:
//   tp=1 sp cp=1 pp=1x1 ep=1 etp=1 dp=1 zero=0 mb=1 gbs=1 schedule=1f1b recompute=none
//   layers=even overlap=both offload=none recipe=bf16
// pp=4x2 is 4 ranks with 2 virtual stages each; recompute=full:3 recomputes the first 3 layers of each virtual stage;
// layers=7/8/8/7 lists them; overlap is both, gradients, parameters or none.
struct ParallelPlan {
  std::int64_t tp = 1;
  bool sp = false;
  std::int64_t pp = 1, vpp = 1;
  std::int64_t dp = 1;
  int zero = 0;  // 0 none, 1 optimizer states, 2 and gradients, 3 and parameters, over the data-parallel group
  std::int64_t micro_batch = 1, global_batch = 1;
  std::string schedule = "1f1b";
  Recompute recompute = Recompute::none;
  std::int64_t recompute_layers = 0;  // full only: layers of each virtual stage, 0 = all
  Layout layout = Layout::even;
  std::vector<std::int64_t> layers;  // layout given: layers of each virtual stage
  bool overlap_gradients = true, overlap_parameters = true;
  std::string recipe = "bf16";

  std::int64_t gpus() const { return tp * pp * dp; }
  std::int64_t stages() const { return pp * vpp; }
  // Micro-batches a pipeline runs in a step. Requires micro_batch * dp to divide global_batch.
  std::int64_t micro_batches() const { return global_batch / (micro_batch * dp); }
  bool operator==(const ParallelPlan&) const = default;
};

std::string to_text(const ParallelPlan& plan);

// What a plan text left open, for the caller to fill with what it knows.
struct PlanText {
  ParallelPlan plan;
  bool has_dp = false, has_global_batch = false, has_zero = false, has_layout = false, has_recipe = false,
       has_schedule = false;
  std::vector<std::string> keys;  // as given; pp=4x2 gives pp and vpp
};

// Reads the text form. Throws InputError: `what: key: found ..., expected ...` with the nearest known key for a
// misspelt one. `what` names the source, for example "--plan".
PlanText parse_plan(std::string_view text, std::string_view what);

// Reads the text form and fills what it leaves open: dp from `gpus`, zero=1 where dp > 1, the layout from the model
// (even where layers divide, else slots), schedule from pp and vpp.
ParallelPlan complete_plan(const PlanText& text, const ModelSpec& model, std::int64_t gpus, std::int64_t global_batch);

// Layers of each virtual stage, in model order; sums to the model's layers. Requires a legal layout.
std::vector<std::int64_t> layers_of_stages(const ParallelPlan& plan, std::int64_t layers);

// Why the plan cannot run, one sentence that names both numbers ("24 heads do not divide by tp=16"), or nothing.
std::optional<std::string> why_not(const ModelSpec& model, const ParallelPlan& plan, std::int64_t gpus, std::int64_t seq);

// Settings that are legal and do nothing ("sp does nothing at tp=1").
std::vector<std::string> notes_on(const ParallelPlan& plan);

}  // namespace core

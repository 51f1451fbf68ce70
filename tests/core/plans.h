#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/framework.h"
#include "core/graph/lower.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"
#include "core/recipe.h"

// Plans and steps that several tests of core ask for.
namespace plans {

// Every legal plan of a coarse grid over all axes, for a model on a few GPUs.
inline std::vector<core::ParallelPlan> grid(const core::ModelSpec& model,
                                            std::int64_t gpus,
                                            std::int64_t seq) {
  std::vector<core::ParallelPlan> out;
  for (const std::int64_t tp : {1, 2}) {
    for (const std::int64_t pp : {1, 2}) {
      if (gpus % (tp * pp) != 0) continue;
      for (const std::int64_t vpp : {1, 2}) {
        for (int zero = 0; zero <= 3; ++zero) {
          for (const auto recompute :
               {core::Recompute::none, core::Recompute::selective, core::Recompute::full}) {
            for (const bool other : {false, true}) {
              core::ParallelPlan plan;
              plan.tp = tp, plan.pp = pp, plan.vpp = vpp, plan.dp = gpus / (tp * pp);
              plan.schedule = vpp > 1 ? "interleaved" : other ? "gpipe" : "1f1b";
              plan.zero = zero;
              plan.micro_batch = other ? 1 : 2;
              plan.global_batch = plan.micro_batch * plan.dp * (other ? pp : 2 * pp);
              plan.sp = other;
              plan.recompute = recompute;
              plan.recompute_layers = recompute == core::Recompute::full && other ? 1 : 0;
              plan.layout = other && pp * vpp > 1 ? core::Layout::slots : core::Layout::even;
              plan.overlap_gradients = !other;
              plan.overlap_parameters = zero != 2;
              if (!core::why_not(model, plan, gpus, seq)) out.push_back(plan);
            }
          }
        }
      }
    }
  }
  return out;
}

inline core::StepWork step(const core::ModelSpec& model,
                           const core::ParallelPlan& plan,
                           std::int64_t seq,
                           core::AttentionKernel attention = core::AttentionKernel::flash2,
                           const std::string& recipe = "bf16",
                           const std::string& framework = "megatron") {
  return core::step_work(
      model, plan, core::load_recipe(recipe), core::load_framework(framework, "hopper"), seq, attention);
}

inline core::ScheduleTable table(const core::ParallelPlan& plan) {
  return core::find_schedule(plan.schedule)->table(plan.pp, plan.vpp, plan.micro_batches());
}

inline core::ParallelPlan plan(const std::string& text) {
  return core::parse_plan(text, "test").plan;
}

}  // namespace plans

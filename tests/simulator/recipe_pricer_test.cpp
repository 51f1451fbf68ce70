// The pricer is a shortcut under every recipe and loss too: the same numbers as the graph.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/graph/lower.h"
#include "simulator/breakdown.h"
#include "simulator/engine/cells.h"
#include "simulator/engine/engine.h"
#include "simulator/pricer.h"
#include "tests/simulator/random_plans.h"

namespace {

using core::Loss;

// fp8 with a first and a last layer in bf16.
core::Recipe some_layers_high() {
  auto recipe = core::load_recipe("fp8-block");
  recipe.high_first = recipe.high_last = 1;
  return recipe;
}

TEST(RecipePricer, GivesTheTimesAndMemoryOfTheGraph) {
  random_plans::Rng rng(71);
  simulator::CellRunner runner;
  simulator::CellTimes times;
  std::vector<simulator::RankMemory> memory;
  for (const auto& recipe : {core::load_recipe("fp8"), core::load_recipe("bf16-muon"), core::load_recipe("bitnet"),
                             core::load_recipe("bf16-adam8bit"), some_layers_high()}) {
    for (const std::string framework : {"megatron", "deepspeed"}) {
      auto setting = random_plans::setting_of("llama-3.2-1b", {"h100-sxm", 8}, 2048, framework);
      setting.recipe = recipe;
      const simulator::Bench bench(setting);
      simulator::Pricer pricer(setting, bench);
      for (int i = 0; i < 6; ++i) {
        auto plan = random_plans::draw_legal(rng, setting);
        plan.loss = random_plans::pick<Loss>(rng, {Loss::unfused, Loss::fused, Loss::linear});
        SCOPED_TRACE(recipe.name + " " + framework + ": " + core::to_text(plan));
        const auto& used = setting.framework_of(plan);
        const auto work = core::step_work(setting.model, plan, setting.recipe, used, setting.seq, setting.attention);
        const auto graph = core::lower(work, random_plans::table_of(plan), core::Grain::cell);
        const auto prices = simulator::prices_of(graph, bench.machine(), used);
        const auto timeline = simulator::run(graph, simulator::durations_of(prices), simulator::contention_of(graph, bench.curves()),
                                             simulator::kernel_shares_of(prices));
        pricer.cell_times(plan, times);
        EXPECT_EQ(runner.run(random_plans::table_of(plan), times), timeline.makespan);
        pricer.memory(plan, random_plans::table_of(plan), memory);
        for (std::int32_t r = 0; r < plan.pp; ++r) {
          const auto& mine = memory[static_cast<std::size_t>(r)];
          EXPECT_EQ(mine.resident + mine.short_lived, simulator::memory_peak({graph, timeline, prices}, r).bytes) << r;
        }
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

}  // namespace

// Memory that PyTorch's allocator counted in Megatron-LM runs (data/measured/memory.csv) against predictions. That counter
// does not see context and communicators, and counts blocks without the gaps between them, so those terms are left out. Of
// a pipeline, Megatron-LM logs the last rank. Experts are taken to be evenly loaded. Megatron-Core's native fusion of the
// loss ("native") holds 10 bytes a logit (data/frameworks/megatron.json).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/io/document.h"
#include "core/units.h"
#include "simulator/request.h"
#include "simulator/step.h"
#include "tests/published/table.h"

namespace simulator {
namespace {

enum class AssumedGpus : std::uint8_t { no, yes };

struct Row {
  std::string id, group, model, gpu, attention, loss, placeholders, plan, rank;
  std::int64_t sequence = 0, gpus = 0;
  double allocated = 0.0, peak = 0.0;  // GiB; allocated 0 = not known
  AssumedGpus assumed_gpus = AssumedGpus::no;  // taken from the memory between steps
};

struct Prediction {
  double between = 0.0, peak = 0.0;  // GiB; between steps: states and buffers
  std::vector<double> terms_GiB;  // by MemoryTerm
  std::string terms;
};

std::vector<Row> read_rows() {
  std::vector<Row> rows;
  for (const auto& cell : published::rows_of("memory.csv", 14)) {
    Row row;
    row.id = cell[0], row.group = cell[1], row.model = cell[2], row.gpu = cell[4], row.attention = cell[6];
    row.loss = cell[7];
    row.placeholders = cell[8], row.plan = cell[9], row.rank = cell[10];
    row.sequence = std::stoll(cell[3]), row.gpus = std::stoll(cell[5]);
    if (!cell[11].empty()) row.allocated = std::stod(cell[11]) / core::gibibyte;
    row.peak = std::stod(cell[12]) / core::gibibyte;
    if (cell[13].find("nearest to the memory between steps") != std::string::npos) row.assumed_gpus = AssumedGpus::yes;
    rows.push_back(row);
  }
  return rows;
}

// A shipped model, or one cut down for a test.
core::ModelSpec model_of(const Row& row) {
  const std::string cut = FORETRAIN_SOURCE_DIR "/tests/published/models/" + row.model + ".json";
  return core::load_model(std::filesystem::exists(cut) ? cut : row.model);
}

bool counted(core::MemoryTerm term) {
  return term != core::MemoryTerm::context && term != core::MemoryTerm::communicators && term != core::MemoryTerm::fragmentation;
}

Prediction of_stage(const StageMemory& stage) {
  Prediction p{stage.states_GiB + stage.terms_GiB[core::index_of(core::MemoryTerm::buffers)], 0.0, stage.terms_GiB, {}};
  for (std::size_t i = 0; i < core::memory_terms; ++i) {
    const auto term = static_cast<core::MemoryTerm>(i);
    if (!counted(term)) continue;
    p.peak += stage.terms_GiB[i];
    p.terms += fmt::format(" {} {:.2f}", core::name_of(term), stage.terms_GiB[i]);
  }
  return p;
}

Prediction predict(const Row& row) {
  Request request;
  request.model = "tiny-llama";  // replaced by the row's own below
  request.gpu = row.gpu, request.gpus = row.gpus, request.attention = row.attention;
  const auto text = core::parse_plan(row.plan, row.id);
  request.recipe = text.plan.recipe;
  auto setting = make_setting(request);
  setting.model = model_of(row);
  setting.seq = row.sequence;
  setting.framework.layer_gradient_placeholders = row.placeholders == "none" ? 0.0 : 1.0;
  setting.framework.output_gradient_placeholders = row.placeholders == "all" ? 1.0 : 0.0;
  if (row.loss == "native") {
    setting.framework.losses[static_cast<std::size_t>(core::Loss::unfused)] = *setting.framework.native_loss;
  }
  const auto plan = core::complete_plan(text, setting.model, row.gpus, text.plan.global_batch);
  EXPECT_EQ(core::why_not(setting.model, plan, row.gpus, row.sequence), std::nullopt) << row.id;
  const Bench bench(setting);
  const auto report = simulate_step(setting, bench, plan, core::Grain::cell, core::Fold::yes, Detail::answer).report;
  if (row.rank == "last") return of_stage(report.stages.back());
  Prediction fullest;
  for (const auto& stage : report.stages) {
    if (auto p = of_stage(stage); p.peak > fullest.peak) fullest = p;
  }
  return fullest;
}

// Errors of predictions over measurements.
struct Errors {
  std::size_t rows = 0;
  double mean_peak = 0.0, worst_peak = 0.0;  // |predicted / measured - 1|
  double worst_allocated = 0.0;              // beyond 0.5 GiB, else 0
};

Errors errors_of(const std::string& group) {
  Errors e;
  for (const auto& row : read_rows()) {
    if (row.group != group) continue;
    const auto p = predict(row);
    const double peak = p.peak / row.peak - 1.0;
    std::printf("%-30s max %6.2f GiB, predicted %6.2f, %+6.1f %%", row.id.c_str(), row.peak, p.peak, 100.0 * peak);
    if (row.allocated > 0.0) {
      const double allocated = p.between / row.allocated - 1.0;
      std::printf("; between steps %5.2f, predicted %5.2f, %+5.1f %%", row.allocated, p.between, 100.0 * allocated);
      if (std::abs(p.between - row.allocated) > 0.5) e.worst_allocated = std::max(e.worst_allocated, std::abs(allocated));
    }
    std::printf("\n   %s\n", p.terms.c_str());
    e.mean_peak += std::abs(peak);
    e.worst_peak = std::max(e.worst_peak, std::abs(peak));
    ++e.rows;
  }
  e.mean_peak /= static_cast<double>(std::max<std::size_t>(1, e.rows));
  std::printf("%s: %zu rows, mean %.1f %%, worst %.1f %%\n", group.c_str(), e.rows, 100.0 * e.mean_peak, 100.0 * e.worst_peak);
  return e;
}

// The two rows of DeepSeek-V3 on GB200 have the same arguments and differ by 21 %: one is predicted within 3 %, the other is the
// worst.
TEST(PublishedMemory, MixtralAndDeepSeekProxiesOfMegatron) {
  const auto e = errors_of("proxy");
  EXPECT_EQ(e.rows, 8u);
  EXPECT_LT(e.worst_peak, 0.19);
  EXPECT_LT(e.worst_allocated, 0.10);
}

TEST(PublishedMemory, DenseModelsOfMegatron) {
  const auto e = errors_of("dense");
  EXPECT_EQ(e.rows, 9u);
  EXPECT_LT(e.worst_peak, 0.05);
  EXPECT_LT(e.worst_allocated, 0.10);
}

TEST(PublishedMemory, SmallExpertModelOfMegatron) {
  const auto e = errors_of("moe");
  EXPECT_EQ(e.rows, 1u);
  EXPECT_LT(e.worst_peak, 0.05);
  EXPECT_LT(e.worst_allocated, 0.10);
}

// With the experts' all-to-alls overlapped (--overlap-moe-expert-parallel-comm) a forward and a backward go layer by layer, and
// what the one leaves takes the place of what the other frees.
TEST(PublishedMemory, OverlappedPairsOfMegatronAreBoundedFromAbove) {
  const auto e = errors_of("pairs");
  EXPECT_EQ(e.rows, 1u);
  EXPECT_LT(e.worst_peak, 0.12);
  EXPECT_LT(e.worst_allocated, 0.10);
}

TEST(PublishedMemory, DenseSlicesOfSimuMax) {
  const auto e = errors_of("simumax");
  EXPECT_EQ(e.rows, 10u);
  EXPECT_LT(e.mean_peak, 0.002);
  EXPECT_LT(e.worst_peak, 0.005);
}

TEST(PublishedMemory, ExpertSlicesOfSimuMax) {
  const auto e = errors_of("simumax_moe");
  EXPECT_EQ(e.rows, 2u);
  EXPECT_LT(e.worst_peak, 0.01);
}

// A number of GPUs that no source states was taken from the memory between steps. All that it changes is the share of the
// optimizer's states: the other terms are those of the fewest GPUs that the arguments allow.
TEST(PublishedMemory, DependsOnUnstatedGpusByTheOptimizersShareOnly) {
  std::size_t rows = 0;
  for (const auto& row : read_rows()) {
    if (row.assumed_gpus == AssumedGpus::no) continue;
    ++rows;
    const auto plan = core::parse_plan(row.plan, row.id).plan;
    auto fewest = plan;
    // Experts fill the ranks of a stage once; the batch shrinks along, so that a pipeline runs as many micro-batches.
    fewest.dp = std::max<std::int64_t>(1, plan.ep * plan.etp / plan.tp);
    fewest.global_batch = plan.global_batch / plan.dp * fewest.dp;
    auto least = row;
    least.gpus = fewest.tp * fewest.pp * fewest.dp, least.plan = core::to_text(fewest);
    const auto with = predict(row), without = predict(least);
    for (std::size_t i = 0; i < core::memory_terms; ++i) {
      const auto term = static_cast<core::MemoryTerm>(i);
      if (!counted(term)) continue;
      if (term == core::MemoryTerm::optimizer) {
        EXPECT_LT(with.terms_GiB[i], without.terms_GiB[i]) << row.id;
      } else {
        EXPECT_DOUBLE_EQ(with.terms_GiB[i], without.terms_GiB[i]) << row.id << " " << core::name_of(term);
      }
    }
  }
  EXPECT_EQ(rows, 8u);
}

}  // namespace
}  // namespace simulator

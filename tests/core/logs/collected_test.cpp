// Real files of runs, where they lie beside the source tree: what users of the formats have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "core/logs/observations.h"
#include "tests/core/logs/reading.h"

namespace core {
namespace {

const std::filesystem::path shared = std::filesystem::path(FORETRAIN_SOURCE_DIR) / ".." / "shared";

#define SKIP_WITHOUT(folder) \
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "SKIPPED: no " << (folder) << " here"

// Numbers of rows: the files' README.
TEST(CollectedTables, OfScalingRunsAreReadAsTheyAre) {
  const auto folder = shared / "scaling" / "data";
  SKIP_WITHOUT(folder);
  const auto read = [&](const std::string& file,
                        ObservationOptions options = wanting({"N", "D", "L"})) {
    return read_observations({folder / file}, options);
  };
  EXPECT_EQ(read("datablations_fit182.csv", wanting({"N", "D", "U", "L"})).size(), 182U);
  EXPECT_EQ(
      read("synthetic_precision_kumar.csv", wanting({"N", "D", "bits_w", "bits_a", "bits_kv", "L"}))
          .size(),
      340U);
  EXPECT_EQ(read("synthetic_qat_chen_w4a4.csv", wanting({"N", "D", "group", "delta_loss"})).size(),
            80U);
  EXPECT_EQ(read("isoflop_curves.csv", wanting({"N", "D", "C", "L"})).size(), 686U);
  EXPECT_EQ(read("porian_isoflop.csv").size(), 683U);
  const auto optima = read("porian_optima.csv", wanting({"C", "n_star"}));
  EXPECT_EQ(optima.size(), 69U);  // one of 70 has no optimum
  EXPECT_EQ(optima.dropped.at(0).why, "no n_star (a variable of the law)");

  const auto chinchilla = read("chinchilla_epoch_svg.csv", wanting({"N", "D", "C", "L"}));
  ASSERT_EQ(chinchilla.size(), 245U);
  EXPECT_NEAR(chinchilla.values[1][0], 9.9938527997097554e+18 / (6 * 6795600349.2894974), 1.0);

  // smooth_loss, as the README says; parameters without embeddings.
  const auto step_law = read("steplaw_dense.csv");
  EXPECT_EQ(step_law.size() + step_law.dropped.size(), 1554U);
  EXPECT_DOUBLE_EQ(step_law.values[2][0], 2.2778836983119093);
  EXPECT_EQ(step_law.notes[0], "N <- n_params_nonemb (non-embedding)");
  for (const auto& [row, why] : step_law.dropped)
    EXPECT_TRUE(why.starts_with("diverged: its loss ")) << row << why;

  auto plain = wanting({"N", "D", "U", "L"});
  plain.where = {"variant="};
  const auto c4 = read("datablations_c4.csv", plain);
  EXPECT_LT(c4.size(), 242U);
  EXPECT_GE(c4.size(), 182U);
}

TEST(CollectedTables, WithSeveralCountsOrLossesAskWhich) {
  const auto folder = shared / "scaling" / "data";
  SKIP_WITHOUT(folder);
  auto options = wanting({"N", "D", "L"});
  const auto read = [&](const std::string& file) {
    return read_observations({folder / file}, options);
  };
  EXPECT_NE(complaint([&] { read("gadre_overtrain.csv"); }).find("8 columns could be L"),
            std::string::npos);
  EXPECT_NE(complaint([&] { read("steplaw_moe.csv"); }).find("2 columns could be N"),
            std::string::npos);
  options.columns = {{"L", "loss_c4_val"}, {"N", "n_params"}};
  EXPECT_EQ(read("gadre_overtrain.csv").size(), 80U);
  options.columns = {{"N", "n_params_nonemb_active"}};
  const auto moe = read("steplaw_moe.csv");
  EXPECT_EQ(moe.size() + moe.dropped.size(), 573U);
}

TEST(CollectedTables, OfDigitisedPointsGiveTokensFromFlops) {
  const auto folder = shared / "inputs" / "scaling_csv";
  SKIP_WITHOUT(folder);
  const auto runs = read_observations({folder / "chinchilla_points.csv"}, wanting({"N", "D", "L"}));
  EXPECT_EQ(runs.notes[0], "N <- Model Size (taken as total)");
  ASSERT_EQ(runs.size(), 245U);
  EXPECT_NEAR(runs.values[1][0], 9.993852799709755e+18 / (6 * 6795600349.289497), 1.0);
}

// Each run of a wandb export of OLMo: its last evaluation, or why there is none.
TEST(CollectedExports, OfWandbGiveOneRunAColumn) {
  const auto folder = shared / "inputs" / "wandb_csv";
  SKIP_WITHOUT(folder);
  auto options = wanting({"N", "D", "L"});
  options.tokens_per_step = 2160 * 2048;  // Groeneveld et al. 2024 (arXiv 2402.00838), table 1
  const auto runs = read_observations({folder / "olmo_00.csv"}, options);
  ASSERT_EQ(runs.size() + runs.dropped.size(), 36U);
  EXPECT_EQ(runs.rows[0], "run OLMo-7B-run-038 in olmo_00.csv");
  EXPECT_EQ(runs.values[0][0], 7e9);
  EXPECT_EQ(runs.values[1][0], 556000.0 * 2160 * 2048);  // the file's last line
  EXPECT_DOUBLE_EQ(runs.values[2][0], 2.3930203914642334);
  EXPECT_EQ(read_observations({folder / "olmo_14.csv"}, options).size(), 36U);

  // The same runs by another text: once, and aloud.
  const auto twice = read_observations({folder / "olmo_00.csv", folder / "olmo_04.csv"}, options);
  EXPECT_EQ(twice.dropped.size(), 10U);
  EXPECT_NE(complaint([&] {
              read_observations({folder / "olmo_40.csv"}, options);
            }).find("copa_acc (a score"),
            std::string::npos);
}

TEST(CollectedExports, OfTensorBoardGiveOneRun) {
  const auto folder = shared / "inputs" / "tensorboard_csv";
  SKIP_WITHOUT(folder);
  auto options = wanting({"N", "D", "L"});
  options.N = 3e9, options.tokens_per_step = 1e6;
  const auto runs = read_observations({folder / "step_loss_lr_gradnorm.csv"}, options);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs.values[1][0], 176648e6);
  // Between the smallest and the largest of the last ten lines.
  EXPECT_GT(runs.values[2][0], 0.51);
  EXPECT_LT(runs.values[2][0], 1.5);
  EXPECT_DOUBLE_EQ(runs.find("lr")->at(0), 2.53671983486e-05);
}

// Why each log is no finished run. That of 52 billion prints no loss: its steps were skipped.
TEST(CollectedLogs, AreReadOrDroppedWithTheReason) {
  const auto inputs = shared / "inputs";
  SKIP_WITHOUT(inputs);
  const std::pair<std::string, std::string> expected[] = {
      {"logs_megatron/hf_trainer_ds_n16.log", "no step has a loss"},
      {"logs_megatron/megatron_bridge_llama31_8b_theoretical.log",
       "no D (tokens trained on): give --batch-tokens"},
      {"logs_megatron/megatron_core_mixtral_8x7b_16xh100.log",
       "unfinished: ends at step 45 of 100"},
      {"logs_megatron/megatron_gpt2_52b_v100_n16.log", "no step has a loss"},
      {"logs_megatron/megatron_gpt2_v100_tp4_pp16.log", "unfinished: ends at step 90 of 1000"},
      {"logs_megatron/megatron_mi250_bf16_loss_spike.log", "diverged: its loss ends at"},
      {"logs_megatron/megds_3d_zero_on_n16.log", "unfinished: ends at step 49 of 1000"},
      {"logs_megatron/megds_mi250_fp16_nan.log", "unfinished: ends at step 200 of 148693"},
      {"logs_megatron/megds_zero_n16.log", "diverged: its loss ends at 40.75"},
      {"logs_nanotron/smollm_350m.log", "unfinished: ends at step 211365 of 1500000"},
      {"logs_nemo/nemo_llama3_8b.log", "no D (tokens trained on): give --batch-tokens"},
      {"logs_torchtitan/llama3_8b_flexattn_4xh100.log",
       "no D (tokens trained on): give --batch-tokens"},
      {"logs_other/internlm_a800.log", "no N (parameters): give --N"},
      {"logs_other/nanochat_a100.log", "unfinished: ends at step 6 of 21400"},
  };
  for (const auto& [file, why] : expected) {
    const auto runs = read_observations({inputs / file}, wanting({"N", "D", "L"}));
    EXPECT_EQ(runs.size(), 0U) << file;
    ASSERT_EQ(runs.dropped.size(), 1U) << file;
    EXPECT_TRUE(runs.dropped[0].why.starts_with(why)) << file << ": " << runs.dropped[0].why;
  }
  const auto empty = inputs / "logs_other" / "llmc_gpt2_124m.log";
  EXPECT_EQ(complaint([&] { read_observations({empty}, wanting({"L"})); }),
            empty.string() + ": is empty, expected a table or a log of a run");
}

TEST(CollectedLogs, OfUnfinishedRunsAreReadWhenAskedFor) {
  const auto inputs = shared / "inputs";
  SKIP_WITHOUT(inputs);
  auto options = wanting({"N", "D", "L"});
  options.keep_unfinished = true;
  const auto megatron =
      read_observations({inputs / "logs_megatron" / "megds_3d_zero_on_n16.log"}, options);
  ASSERT_EQ(megatron.size(), 1U);
  // Narayanan et al. 2021, equation 2: l = 64, h = 8192, V = 50257, s = 1024; and the last norm.
  const double h = 8192;
  EXPECT_EQ(megatron.values[0][0], 64 * (12 * h * h + 13 * h) + (50257 + 1024) * h + 2 * h);
  EXPECT_EQ(megatron.values[1][0], 50176.0 * 1024);
  const auto nanotron = read_observations({inputs / "logs_nanotron" / "smollm_350m.log"}, options);
  EXPECT_EQ(nanotron.values[0][0], 3.5e8);
  EXPECT_EQ(nanotron.values[1][0], 480e9);
  EXPECT_EQ(nanotron.values[2][0], 2.06);
  options.tokens_per_step = 128 * 8192;
  const auto titan =
      read_observations({inputs / "logs_torchtitan" / "llama3_8b_flexattn_4xh100.log"}, options);
  EXPECT_EQ(titan.values,
            (std::vector<std::vector<double>>{{8e9}, {10.0 * 128 * 8192}, {10.2391}}));
}

// Evaluations of the OLMo ladder along its runs: the last of each, which the file marks.
TEST(CollectedTables, OfStepsGiveTheLastEvaluationOfEachRun) {
  const auto folder = shared / "scaling" / "data";
  SKIP_WITHOUT(folder);
  auto options = wanting({"N", "D", "L"});
  options.columns = {{"L", "ce_c4_en"}};
  auto marked = options;
  marked.where = {"is_final=1"};
  const auto runs = read_observations({folder / "olmo_ladder.csv"}, options);
  const auto last = read_observations({folder / "olmo_ladder.csv"}, marked);
  ASSERT_EQ(runs.size(), last.size());
  EXPECT_EQ(runs.values[1], last.values[1]);
  for (std::size_t i = 0; i < runs.size(); ++i)
    EXPECT_NEAR(runs.values[2][i], last.values[2][i], 0.002);
}

}  // namespace
}  // namespace core

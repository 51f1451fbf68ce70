// Real files of runs, where they lie beside the source tree: what users of the formats have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>

#include "core/error.h"
#include "core/logs/observations.h"

namespace core {
namespace {

using Strings = std::vector<std::string>;

const std::filesystem::path shared = std::filesystem::path(FORETRAIN_SOURCE_DIR) / ".." / "shared";

#define SKIP_WITHOUT(folder) \
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "SKIPPED: no " << (folder) << " here"

ObservationOptions wanting(Strings wanted) {
  ObservationOptions options;
  options.wanted = std::move(wanted);
  return options;
}

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

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

}  // namespace
}  // namespace core

// Tables with a row a step: exports of wandb and TensorBoard, and what people write themselves.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/logs/observations.h"
#include "tests/core/logs/reading.h"

namespace core {
namespace {

// Two runs side by side, the second shorter, with the ranges that wandb writes beside each.
std::string wide(const std::string& metric) {
  std::string text = "\"Step\"";
  for (const auto run : {"llama-7B-a", "160M"})
    text += fmt::format(",\"{0} - {1}\",\"{0} - {1}__MIN\",\"{0} - {1}__MAX\"", run, metric);
  for (int step = 100; step <= 400; step += 100) {
    const auto a = 4.0 - 0.001 * step, b = 5.0 - 0.001 * step;
    text += fmt::format("\n\"{}\",\"{}\",\"{}\",\"{}\"", step, a, a, a);
    text += step <= 200 ? fmt::format(",\"{}\",\"{}\",\"{}\"", b, b, b) : ",\"\",\"\",\"\"";
  }
  return text + "\n";
}

TEST(WandbExport, OfSeveralRunsGivesTheEndOfEach) {
  auto options = wanting({"N", "D", "L"});
  options.tokens_per_step = 1e6;
  const auto runs = parse_observations(wide("eval/c4/CrossEntropyLoss"), "export.csv", options);
  EXPECT_EQ(runs.rows, (Strings{"run llama-7B-a in export.csv", "run 160M in export.csv"}));
  EXPECT_EQ(runs.values[0], (Doubles{7e9, 1.6e8}));
  EXPECT_EQ(runs.values[1], (Doubles{4e8, 2e8}));
  EXPECT_EQ(runs.values[2], (Doubles{4.0 - 0.4, 5.0 - 0.2}));
}

TEST(WandbExport, WithoutTokensDropsItsRunsWithTheReason) {
  const auto runs = parse_observations(wide("loss"), "export.csv", wanting({"N", "D", "L"}));
  EXPECT_EQ(runs.size(), 0U);
  ASSERT_EQ(runs.dropped.size(), 2U);
  EXPECT_EQ(runs.dropped[1].row, "run 160M in export.csv");
  EXPECT_EQ(runs.dropped[1].why, "no D (tokens trained on): give --batch-tokens");
}

TEST(WandbExport, OfAScoreIsNoLoss) {
  const auto refused = complaint([] {
    parse_observations(wide("eval/downstream/copa_acc"), "export.csv", wanting({"N", "L"}));
  });
  EXPECT_EQ(refused,
            "export.csv: found eval/downstream/copa_acc (a score, of which more is better), "
            "expected a loss in nats "
            "a token (--columns L=METRIC takes another)");
}

TEST(WandbExport, OverTokensHasTheirNumber) {
  const auto runs =
      parse_observations("\"tokens\",\"1B - train/loss\"\n\"1e9\",\"3\"\n\"2e9\",\"2.5\"\n",
                         "export.csv",
                         wanting({"N", "D", "L"}));
  EXPECT_EQ(runs.values, (std::vector<Doubles>{{1e9}, {2e9}, {2.5}}));
}

TEST(StepTable, GivesTheEndOfEachRunOfItsColumn) {
  // Interleaved runs, one of which diverges; batch and length as columns.
  const auto runs = parse_observations(
      "run,step,params,loss,batch_size,seq_len,lr\n"
      "a,1,1e9,4,8,1000,1e-3\nb,1,2e9,4,8,1000,2e-3\na,2,1e9,3,8,1000,1e-3\nb,2,2e9,nan,8,1000,2e-"
      "3\n",
      "steps.csv",
      wanting({"N", "D", "L"}));
  EXPECT_EQ(runs.rows, (Strings{"run a in steps.csv"}));
  EXPECT_EQ(runs.values[1], (Doubles{2 * 8 * 1000}));
  EXPECT_EQ(runs.values[2], (Doubles{3}));
  EXPECT_EQ((*runs.find("lr")), (Doubles{1e-3}));
  ASSERT_EQ(runs.dropped.size(), 1U);
  EXPECT_EQ(runs.dropped[0].why, "diverged: its loss at step 2 is not finite");
}

TEST(StepTable, WithoutRunsIsOneRunForEachN) {
  auto options = wanting({"N", "D", "L"});
  options.tokens_per_step = 10;
  const auto runs =
      parse_observations("step,N,loss\n1,5,4\n2,5,3\n1,6,3\n2,6,2\n", "steps.csv", options);
  EXPECT_EQ(runs.values, (std::vector<Doubles>{{5, 6}, {20, 20}, {3, 2}}));
  EXPECT_EQ(runs.notes[3], "steps.csv: 4 lines with steps are 2 runs, told apart by N");
}

TEST(StepTable, FillsBlanksFromOtherRowsAndNamesBadLines) {
  const auto runs =
      parse_observations("step,tokens,loss,max_steps\n1,100,4,3\n2,,,3\ntwo,1,1,3\n3,300,3,3\n4\n",
                         "1B.csv",
                         wanting({"N", "D", "L"}));
  EXPECT_EQ(runs.values, (std::vector<Doubles>{{1e9}, {300}, {3}, {3}}));
  Strings dropped;
  for (const auto& [row, why] : runs.dropped) dropped.push_back(row + ": " + why);
  EXPECT_EQ(dropped,
            (Strings{"1B.csv line 4: step: found \"two\", expected a step",
                     "1B.csv line 6: found 1 cells, expected 4"}));
}

TEST(StepTable, ThatEndsBeforeItsStepsDoIsUnfinished) {
  const std::string text = "step,tokens,loss,max_steps\n1,100,4,9\n2,200,3,9\n";
  auto options = wanting({"D", "L"});
  EXPECT_EQ(parse_observations(text, "s.csv", options).dropped.at(0).why,
            "unfinished: ends at step 2 of 9");
  options.keep_unfinished = true;
  EXPECT_EQ(parse_observations(text, "s.csv", options).size(), 1U);
}

TEST(TensorBoardExport, IsTheLossOfOneRun) {
  auto options = wanting({"N", "D", "L"});
  options.tokens_per_step = 1e6;
  const std::string text = "Wall time,Step,Value\n1.5,10,4\n2.5,20,3.5\n";
  const auto runs = parse_observations(text, "run-160M-tag-train_loss.csv", options);
  EXPECT_EQ(runs.values, (std::vector<Doubles>{{1.6e8}, {2e7}, {3.5}, {2.5}}));
  EXPECT_EQ(runs.variables.back(), "Wall time");
  EXPECT_EQ(complaint([&] { parse_observations(text, "run-160M-tag-eval_accuracy.csv", options); }),
            "run-160M-tag-eval_accuracy.csv: is a score by its name, expected a loss in nats a "
            "token (--columns "
            "L=Value takes it)");
}

TEST(WandbExport, OfTwoLossesTakesTheHeldOut) {
  auto options = wanting({"N", "D", "L"});
  options.tokens_per_step = 1.0;
  const std::string text = "Step,a-1B - loss,a-1B - val_loss\n1,4,5\n";
  const auto runs = parse_observations(text, "e.csv", options);
  EXPECT_EQ(runs.values[2], (Doubles{5}));
  EXPECT_EQ(runs.notes[0], "L <- val_loss (held-out); not loss (--columns L=COLUMN)");
}

TEST(Files, OfTheSameRunCountOnceAndMixedLossesAreNamed) {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("foretrain-logs-{}", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.csv") << "Step,a-1B - loss\n1,4\n";
  std::ofstream(folder / "b.csv") << "Step,a-1B - val_loss,2B - val_loss\n1,5,6\n";
  std::ofstream(folder / "c.csv") << "params,tokens,loss\n3e9,7,8\n";
  auto options = wanting({"N", "D", "L"});
  options.tokens_per_step = 7.0;
  const auto runs =
      read_observations({folder / "a.csv", folder / "b.csv", folder / "c.csv"}, options);
  EXPECT_EQ(runs.rows, (Strings{"run a-1B in a.csv", "run 2B in b.csv", "c.csv line 2"}));
  EXPECT_EQ(runs.values, (std::vector<Doubles>{{1e9, 2e9, 3e9}, {7, 7, 7}, {4, 6, 8}}));
  EXPECT_EQ(runs.dropped.at(0).why, "stands twice: the same run as run a-1B in a.csv");
  EXPECT_EQ(runs.warnings,
            Strings{"b.csv: its loss is val_loss, that of a.csv is loss: losses of other texts do "
                    "not mix in a fit"});
  EXPECT_NE(std::find(runs.notes.begin(),
                      runs.notes.end(),
                      "c.csv: --batch-tokens has no effect: it has its own D"),
            runs.notes.end());
  EXPECT_NE(complaint([&] {
              read_observations({folder / "d.csv"}, options);
            }).find("d.csv: cannot be opened"),
            std::string::npos);
  EXPECT_NE(
      complaint([&] { read_observations({folder}, options); }).find("is a folder, expected a file"),
      std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace core

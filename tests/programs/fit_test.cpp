#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/io/document.h"
#include "tests/programs/run_program.h"

namespace {

const std::string data = std::string(FORETRAIN_SOURCE_DIR) + "/data/runs/";

core::Document json_of(const std::string& line) {
  const auto answer = run_program(line + " --format json");
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_EQ(answer.err, "");
  return core::Document::parse_json(answer.out, "fit");
}

std::filesystem::path temporary(const std::string& name, const std::string& text) {
  const auto file = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(file) << text;
  return file;
}

// CLI.md, fit: the keys, and values of Besiroglu et al. 2024's 240 points.
TEST(FitProgram, FitsChinchillasPoints) {
  const auto report = json_of("fit chinchilla " + data + "chinchilla-epoch.csv --drop-highest 5 --bootstrap 200");
  EXPECT_EQ(report.at("law").as_text(), "chinchilla");
  EXPECT_EQ(report.at("formula").as_text(), "E + A / N^alpha + B / D^beta");
  EXPECT_EQ(report.at("rows_used").as_int(0, 1000), 240);
  EXPECT_EQ(report.at("rows_dropped").as_list().size(), 5u);
  EXPECT_LE(report.at("objective").as_real(), 0.0010182740179);
  EXPECT_EQ(report.at("starts").as_int(0, 10000), 4500);
  EXPECT_TRUE(report.at("converged").as_bool());
  const auto& alpha = report.at("parameters").at("alpha");
  EXPECT_NEAR(alpha.at("value").as_real(), 0.347310, 0.347310e-4);
  EXPECT_LT(alpha.at("low").as_real(), alpha.at("value").as_real());
  EXPECT_GT(alpha.at("high").as_real(), alpha.at("value").as_real());
  for (const auto* key : {"version", "objective_kind", "r2_log", "held_out_error", "elapsed_s", "warnings", "seed", "mapping"}) EXPECT_TRUE(report.has(key)) << key;
}

TEST(FitProgram, IsTheSameOnAnyNumberOfThreads) {
  const auto line = "fit chinchilla " + data + "chinchilla-epoch.csv --bootstrap 100 --reproducible --format json";
  const auto one = run_program(line + " --threads 1"), two = run_program(line + " --threads 2");
  EXPECT_EQ(one.status, 0);
  EXPECT_EQ(one.out, two.out);
}

// A law that was saved says the same, with an interval.
TEST(FitProgram, SavesWhatEvaluateReads) {
  const auto file = std::filesystem::path(testing::TempDir()) / "saved-law.json";
  const auto fitted = json_of("fit chinchilla " + data + "chinchilla-epoch.csv --drop-highest 5 --bootstrap 100 --save " + file.string());
  const auto at = json_of("fit evaluate " + file.string() + " --N 70e9 --D 1.4T");
  const auto value = [&](const char* name) { return fitted.at("parameters").at(name).at("value").as_real(); };
  const double expected = value("E") + value("A") / std::pow(70e9, value("alpha")) + value("B") / std::pow(1.4e12, value("beta"));
  EXPECT_NEAR(at.at("value").as_real(), expected, 1e-12);
  EXPECT_LT(at.at("low").as_real(), expected);
  EXPECT_GT(at.at("high").as_real(), expected);
}

TEST(FitProgram, TakesAFormula) {
  const auto report = json_of("fit --formula 'E + A / N^alpha + B / D^beta' " + data + "chinchilla-epoch.csv --drop-highest 5");
  EXPECT_LE(report.at("objective").as_real(), 0.0010182740179);
}

TEST(FitProgram, ChoosesTheLawThatPredictsHeldOutRunsBest) {
  // Kaplan's joint form has no floor: rows of a law with a high one are not predicted by it.
  std::string table = "params,tokens,loss\n";
  for (double N = 1e8; N < 1e11; N *= 2.2) {
    for (double D = 1e9; D < 1e12; D *= 2.9) {
      table += std::to_string(N) + "," + std::to_string(D) + "," + std::to_string(2.0 + 400.0 / std::pow(N, 0.34) + 1500.0 / std::pow(D, 0.37)) + "\n";
    }
  }
  const auto file = temporary("auto.csv", table);
  const auto report = json_of("fit auto " + file.string());
  EXPECT_EQ(report.at("law").as_text(), "chinchilla");  // of those that hold it as a special case, the simplest
  EXPECT_LT(report.at("held_out_error").as_real(), 1e-4);
  EXPECT_GE(report.at("compared").as_list().size(), 5u);
}

TEST(FitProgram, HoldsOutWhatIsAsked) {
  const auto report = json_of("fit chinchilla " + data + "chinchilla-epoch.csv --drop-highest 5 --holdout 'compute>1e21' --starts 100");
  EXPECT_LT(report.at("rows_used").as_int(0, 1000), 240);
  EXPECT_EQ(report.at("rows_used").as_int(0, 1000) + report.at("held_out").at("rows").as_int(0, 1000), 240);
  EXPECT_LT(report.at("held_out_error").as_real(), 0.05);
}

TEST(FitProgram, RefusesWithOneLine) {
  const auto runs = data + "chinchilla-epoch.csv";
  expect_refused("fit chinchila " + runs, {"chinchila", "chinchilla"});
  expect_refused("fit chinchilla", {"RUNS", "expected"});
  expect_refused("fit chinchilla /nowhere.csv", {"/nowhere.csv"});
  expect_refused("fit chinchilla " + runs + " --columns N=parms", {"parms"});
  expect_refused("fit chinchilla " + runs + " --holdout compute", {"--holdout", "compute"});
  expect_refused("fit chinchilla " + runs + " --fix gamma=1", {"--fix", "gamma"});
  expect_refused("fit chinchilla " + runs + " --fix alpha", {"--fix", "NAME=VALUE"});
  expect_refused("fit --formula 'E + A / N^' " + runs, {"--formula", "character"});
  expect_refused("fit evaluate chinchilla-epoch --N 1e9", {"--D"});
  expect_refused("fit evaluate chinchilla-epoch --N 1e9 --D much", {"--D", "much"});
  expect_refused("fit evaluate chinchilla-epoch --N 1e9 --D 1e9 --U 1", {"--U", "N, D"});
  const auto empty = temporary("empty.csv", "");
  expect_refused("fit chinchilla " + empty.string(), {"empty.csv", "empty"});
}

// Every sample of a run is fitted along its steps, or refused with one line.
TEST(FitProgram, ReadsSamplesOfRunsAlongTheirSteps) {
  const std::filesystem::path inputs = std::string(FORETRAIN_SOURCE_DIR) + "/../shared/inputs";
  if (!std::filesystem::exists(inputs)) GTEST_SKIP() << inputs << " is absent: samples of runs are not read";
  int fitted = 0;
  for (const auto* folder : {"wandb_csv", "tensorboard_csv", "logs_megatron", "logs_nanotron", "logs_nemo", "logs_torchtitan", "logs_other"}) {
    for (const auto& entry : std::filesystem::directory_iterator(inputs / folder)) {
      if (entry.path().extension() == ".md") continue;
      const auto answer = run_program("fit loss-curve " + entry.path().string() + " --along --batch-tokens 4M --starts 50 --quiet");
      fitted += answer.status == 0 ? 1 : 0;
      if (answer.status == 0) continue;
      EXPECT_EQ(answer.status, 2) << entry.path();
      EXPECT_EQ(lines_of(answer.err), 1) << entry.path() << answer.err;
      EXPECT_EQ(answer.out, "") << entry.path();
    }
  }
  EXPECT_GE(fitted, 7);
}

TEST(FitProgram, ListsLawsAndConstants) {
  EXPECT_NE(run_program("fit --list").out.find("chinchilla"), std::string::npos);
  EXPECT_NE(run_program("fit --list constants").out.find("chinchilla-epoch"), std::string::npos);
  EXPECT_EQ(run_program("fit --list nothing").status, 2);
}

}  // namespace

// Predictions of measured runs against the committed errors of earlier ones (tests/published/baselines), through the program
// that users run: what is predicted now, and what happens when a number that predictions rest on is spoiled.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/io/document.h"
#include "planner/calibrate/data_text.h"
#include "tests/programs/data_copy.h"
#include "tests/programs/run_program.h"

namespace {

namespace fs = std::filesystem;

const std::string runs = FORETRAIN_SOURCE_DIR "/data/measured/runs.csv";
const std::string all_runs = FORETRAIN_SOURCE_DIR "/../shared/measured/training_runs.csv";

Answer held(const std::string& table, const std::string& name, const std::string& environment = "") {
  return run_program("simulate check " + table +
                         " --baseline " FORETRAIN_SOURCE_DIR "/tests/published/baselines/" + name + ".json",
                     environment);
}

TEST(Baseline, HoldsTheShippedRuns) {
  const auto answer = held(runs, "runs");
  EXPECT_EQ(answer.status, 0) << answer.err;
}

TEST(Baseline, HoldsAllMeasuredRunsWhereTheyAre) {
  if (!fs::exists(all_runs)) GTEST_SKIP() << all_runs << " is not here: only data/measured/runs.csv is held to a baseline";
  const auto answer = held(all_runs, "training_runs");
  EXPECT_EQ(answer.status, 0) << answer.err;
}

struct Figure {
  std::string file, key;
  std::vector<double> values;

  std::vector<double> times(double factor) const {
    auto changed = values;
    for (double& value : changed) value *= factor;
    return changed;
  }
};

// The figures that step times of the shipped runs follow most.
std::vector<Figure> most_sensitive(std::size_t n) {
  const auto answer = run_program("simulate calibrate " + runs + " --sensitivity --format json");
  EXPECT_EQ(answer.status, 0) << answer.err;
  const auto report = core::Document::parse_json(answer.out, "stdout");
  std::vector<Figure> figures;
  for (const auto& entry : report.at("figures").as_list()) {
    if (figures.size() == n) break;
    auto& figure = figures.emplace_back(Figure{entry.at("file").as_text(), entry.at("key").as_text(), {}});
    for (const auto& value : entry.at("values").as_list()) figure.values.push_back(value.as_real());
  }
  return figures;
}

void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

// Whether the check of spoiled data fails, and for errors that grew.
bool fails(const std::string& environment) {
  const auto answer = held(runs, "runs", environment);
  if (answer.status == 0) return false;
  EXPECT_EQ(answer.status, 1) << answer.err;
  EXPECT_NE(answer.err.find("in the baseline"), std::string::npos) << answer.err;
  return true;
}

// A tenth more or a tenth less: where the one makes no row worse, what is shipped is too low for all of them.
TEST(Baseline, FailsWhenASensitiveFigureIsSpoiled) {
  const auto figures = most_sensitive(10);
  ASSERT_EQ(figures.size(), 10U);
  const auto data = copy_of_data("baseline_spoiled");
  const auto environment = "FORETRAIN_DATA=" + data.string();
  for (const auto& figure : figures) {
    const auto file = data / figure.file;
    const auto text = text_of(file);
    const auto fails_times = [&](double factor) {
      write(file, planner::with_figure(text, figure.file, figure.key, figure.times(factor), "spoiled"));
      return fails(environment);
    };
    EXPECT_TRUE(fails_times(1.1) || fails_times(0.9)) << figure.file << " " << figure.key;
    write(file, text);
  }
  EXPECT_FALSE(fails(environment)) << "the copy is as it was";
}

}  // namespace

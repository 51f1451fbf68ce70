#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "tests/programs/data_copy.h"
#include "tests/programs/run_program.h"

namespace {

namespace fs = std::filesystem;

// The figure at a key that stands once in a file gets another value and source.
void spoil(const fs::path& file, const std::string& key, const std::string& figure) {
  const auto text = text_of(file);
  const std::regex there("\"" + key + "\": \\{\"value[^}]*\\}");
  const auto spoiled =
      std::regex_replace(text, there, "\"" + key + "\": " + figure, std::regex_constants::format_first_only);
  ASSERT_NE(spoiled, text) << file << " " << key;
  std::ofstream(file, std::ios::binary) << spoiled;
}

std::map<std::string, std::string> curves_of(const fs::path& data) {
  std::map<std::string, std::string> texts;
  for (const auto& file : fs::directory_iterator(data / "curves"))
    texts.emplace(file.path().filename().string(), text_of(file.path()));
  return texts;
}

Answer calibrate(const fs::path& data, const std::string& options) {
  return run_program("simulate calibrate " + options, "FORETRAIN_DATA=" + data.string());
}

// What is written depends on tables and declarations alone.
TEST(Calibrate, WritesTheSameCurvesTwiceAndFromSpoiledOnes) {
  const auto once = copy_of_data("calibrate_once"), spoiled = copy_of_data("calibrate_spoiled");
  const std::string estimate = R"(, "source": "a guess", "checked": "estimate"})";
  spoil(spoiled / "curves/ampere.json", "tile_perimeter", R"({"value": 55)" + estimate);
  spoil(spoiled / "curves/hopper.json", "bandwidth_efficiency", R"({"value": 0.45)" + estimate);
  spoil(spoiled / "curves/collectives-hopper.json", "base_us", R"({"value": 50)" + estimate);

  const auto first = calibrate(once, "--write --threads 1");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.err.find("simulate: calibrate: wrote curves/ampere.json"), std::string::npos);
  const auto fitted = curves_of(once);
  ASSERT_EQ(calibrate(once, "--write").status, 0);
  EXPECT_EQ(curves_of(once), fitted);
  EXPECT_NE(curves_of(spoiled), fitted);
  ASSERT_EQ(calibrate(spoiled, "--write --from " + (spoiled / "measured").string()).status, 0);
  EXPECT_EQ(curves_of(spoiled), fitted);
}

TEST(Calibrate, SaysParametersBesideRows) {
  const auto answer = run_program("simulate calibrate --quiet");
  ASSERT_EQ(answer.status, 0) << answer.err;
  EXPECT_NE(answer.out.find("6 parameters (6 that rows touch) on "), std::string::npos);
  EXPECT_NE(answer.out.find("no row touches it: stays at its start"), std::string::npos);
}

TEST(Calibrate, RefusesBadInputInOneLine) {
  const auto folder = own_folder() / "calibrate_bad";
  fs::create_directories(folder);
  std::ofstream(folder / "scan.csv") << "gpu,pass,batch,sequence,heads,head_size,time_ms,source\n"
                                        "h200-sxm,forward,1,8192,64,128,soon,x\n";
  expect_refused("simulate calibrate --from " + folder.string(),
                 {"scan.csv: line 2, column time_ms: found \"soon\", expected a number above 0"});
  expect_refused("simulate calibrate --from " + folder.string() + "/none", {"--from", "expected a folder"});
  expect_refused("simulate calibrate --leave-out nobody", {"--leave-out nobody: no row of the tables"});
  expect_refused("simulate calibrate --from . " FORETRAIN_SOURCE_DIR "/data/measured/runs.csv",
                 {"--from: names tables of kernels"});
}

}  // namespace

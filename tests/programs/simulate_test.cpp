// `simulate` against its contract on the command line (CLI.md): exit statuses, streams, complaints.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/io/document.h"
#include "tests/programs/run_program.h"

namespace {

const std::string fits = "simulate --model tiny-llama --gpus 2 --plan tp=2 --no-better-plans";

TEST(Simulate, AnswersOnStdoutAlone) {
  const Answer answer = run_program(fits);
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.out.find("tp=2"), std::string::npos) << answer.out;
  EXPECT_EQ(answer.err, "");
}

TEST(Simulate, ExitsWith1WhenThePlanDoesNotFit) {
  const Answer answer = run_program(
      "simulate --model llama-3.1-70b --gpus 1 --gbs 1 --plan tp=1 --no-better-plans --format "
      "json");
  EXPECT_EQ(answer.status, 1) << answer.err;
  const core::Document report = core::Document::parse_json(answer.out, "stdout");
  EXPECT_EQ(report.at("fits").as_text(), "no");
  EXPECT_GT(report.at("short_GiB").as_real(), 0.0);
}

TEST(Simulate, WarnsOnStderrUnlessQuiet) {
  const std::string idle_setting =
      "simulate --model tiny-llama --gpus 1 --plan 'tp=1 sp' --no-better-plans";
  const Answer loud = run_program(idle_setting), quiet = run_program(idle_setting + " --quiet");
  EXPECT_EQ(loud.status, 0);
  EXPECT_NE(loud.err.find("warning: sp"), std::string::npos) << loud.err;
  EXPECT_EQ(loud.out.find("warning"), std::string::npos) << loud.out;
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(quiet.out, loud.out);
}

TEST(Simulate, WritesJsonOfTheContract) {
  const Answer answer = run_program(fits + " --format json");
  EXPECT_EQ(answer.status, 0);
  const core::Document report = core::Document::parse_json(answer.out, "stdout");
  for (const char* key : {"version",
                          "plan",
                          "step_time_s",
                          "step_time_low_s",
                          "step_time_high_s",
                          "tokens_per_s_per_gpu",
                          "mfu",
                          "flops_convention",
                          "fits",
                          "peak_memory_GiB",
                          "memory_limit_GiB",
                          "stages",
                          "breakdown_s",
                          "measured_share",
                          "critical_path",
                          "by_operation",
                          "sources"}) {
    EXPECT_TRUE(report.has(key)) << key;
  }
  double parts = 0.0;
  for (const auto& [name, part] : report.at("breakdown_s").as_object()) {
    parts += part.as_real();
  }
  const double step = report.at("step_time_s").as_real();
  EXPECT_NEAR(parts, step, 0.001 * step);
  EXPECT_LE(report.at("step_time_low_s").as_real(), step);
  EXPECT_GE(report.at("step_time_high_s").as_real(), step);
}

TEST(Simulate, GivesTheSameBytesAgain) {
  for (const std::string format : {"table", "json", "csv", "markdown"}) {
    const std::string line =
        "simulate --model tiny-llama --gpus 4 --plan 'tp=2 dp=2' --format " + format;
    const Answer first = run_program(line), second = run_program(line);
    EXPECT_EQ(first.status, 0) << first.err;
    EXPECT_EQ(first.out, second.out) << format;
  }
}

TEST(Simulate, WritesFilesAskedFor) {
  const std::string file =
      (std::filesystem::temp_directory_path() / "foretrain-simulate-test.json").string();
  const Answer to_file = run_program(fits + " --format json --output " + file);
  EXPECT_EQ(to_file.status, 0) << to_file.err;
  EXPECT_EQ(to_file.out, "");
  EXPECT_TRUE(core::Document::read_json_file(file).has("step_time_s"));
  std::filesystem::remove(file);
}

TEST(Simulate, RefusesBadUsageInOneLine) {
  expect_refused("simulate --plan tp=2", {"--gpus"});
  expect_refused("simulate --gpus 2", {"--plan"});
  expect_refused("simulate --gpus 0 --plan tp=1", {"--gpus", "0", "1"});
  expect_refused("simulate --gpus many --plan tp=1", {"--gpus", "many"});
  expect_refused(fits + " --format xml", {"--format", "xml", "table", "json"});
  expect_refused(fits + " --grain fine", {"--grain", "fine", "cell", "op"});
  expect_refused(fits + " --no-such-flag", {"--no-such-flag"});
  expect_refused(fits + " --fromat json", {"--fromat", "--format"});
}

TEST(Simulate, RefusesUnknownNamesWithTheNearest) {
  expect_refused("simulate --model llama-3.1-8 --gpus 2 --plan tp=2",
                 {"--model", "llama-3.1-8", "llama-3.1-8b"});
  expect_refused("simulate --gpu h100-smx --gpus 2 --plan tp=2", {"--gpu", "h100-smx", "h100-sxm"});
  expect_refused("simulate --recipe bf61 --gpus 2 --plan tp=2", {"bf61", "bf16"});
  expect_refused("simulate --framework megatorn --gpus 2 --plan tp=2", {"megatorn", "megatron"});
}

TEST(Simulate, RefusesPlansThatCannotRun) {
  expect_refused("simulate --model tiny-llama --gpus 2 --plan tpp=2", {"--plan", "tpp", "tp"});
  expect_refused("simulate --model tiny-llama --gpus 2 --plan tp=two", {"--plan", "tp", "two"});
  expect_refused("simulate --model tiny-llama --gpus 3 --plan tp=3", {"--plan", "tp=3"});
  expect_refused("simulate --model tiny-llama --gpus 4 --plan 'tp=2 dp=1'", {"--plan", "4"});
}

TEST(Simulate, RefusesDataAndConfigurationsItCannotRead) {
  expect_refused(fits, {"FORETRAIN_DATA", "/nowhere"}, "FORETRAIN_DATA=/nowhere");
  expect_refused("simulate --model /nowhere/config.json --gpus 2 --plan tp=2",
                 {"/nowhere/config.json"});
  expect_refused("simulate --cluster /nowhere/cluster.json --gpus 2 --plan tp=2",
                 {"/nowhere/cluster.json"});
}

TEST(Simulate, AnswersHelpAndVersionWithStatus0) {
  const Answer help = run_program("simulate --help"), version = run_program("simulate --version");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("--plan"), std::string::npos);
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(lines_of(version.out), 1);
}

}  // namespace

// `plan` against its contract on the command line (CLI.md): exit statuses, streams, complaints,
// keys.
#include <gtest/gtest.h>

#include <string>

#include "core/io/document.h"
#include "tests/programs/run_program.h"

namespace {

const std::string small = "plan --model tiny-llama --gpus 4 --gbs 16 --top 3";

core::Document json_of(const std::string& line) {
  const Answer answer = run_program(line + " --format json");
  EXPECT_EQ(answer.status, 0) << answer.err;
  return core::Document::parse_json(answer.out, "stdout");
}

TEST(Plan, AnswersOnStdoutAlone) {
  const Answer answer = run_program(small);
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.out.find("dp="), std::string::npos) << answer.out;
  EXPECT_EQ(answer.err, "");
}

TEST(Plan, RanksPlansByStepTime) {
  const core::Document report = json_of(small);
  for (const char* key : {"version",
                          "request",
                          "model",
                          "cluster",
                          "searched",
                          "feasible",
                          "elapsed_s",
                          "rejected",
                          "sources"}) {
    EXPECT_TRUE(report.has(key)) << key;
  }
  const auto& plans = report.at("plans").as_list();
  ASSERT_EQ(plans.size(), 3U);
  double before = 0.0;
  std::int64_t rank = 0;
  for (const core::Document& plan : plans) {
    EXPECT_EQ(plan.at("rank").as_positive_int(), ++rank);
    EXPECT_GE(plan.at("step_time_s").as_real(), before);
    before = plan.at("step_time_s").as_real();
  }
}

TEST(Plan, AgreesWithSimulate) {
  const core::Document best = json_of(small).at("plans").as_list().front();
  const core::Document step =
      json_of("simulate --model tiny-llama --gpus 4 --no-better-plans --plan '" +
              best.at("plan").as_text() + "'");
  EXPECT_EQ(best.at("step_time_s").as_real(), step.at("step_time_s").as_real());
  EXPECT_EQ(best.at("peak_memory_GiB").as_real(), step.at("peak_memory_GiB").as_real());
}

// One GPU of 80 GB: 7B fits only with states on the host, which are tried when asked.
TEST(Plan, TriesOffloadWhenAsked) {
  const std::string line = "plan --model llama-2-7b --gpus 1 --gpu a100-sxm-80 --gbs 8 --top 1 --quiet";
  EXPECT_EQ(run_program(line).status, 1);
  const core::Document best = json_of(line + " --allow offload").at("plans").as_list().front();
  EXPECT_NE(best.at("plan").as_text().find("offload=optimizer"), std::string::npos);
  EXPECT_GT(best.at("host_memory_GiB").as_real(), 100.0);
  EXPECT_LT(best.at("host_memory_GiB").as_real(), best.at("host_memory_limit_GiB").as_real());
  const core::Document held = json_of(line + " --fix offload=optimizer").at("plans").as_list().front();
  EXPECT_NE(held.at("plan").as_text().find("offload=optimizer "), std::string::npos);
  const Answer bad = run_program(line + " --allow everything");
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.err.find("--allow: found \"everything\", expected offload"), std::string::npos) << bad.err;
}

TEST(Plan, ExitsWith1WhenNothingFits) {
  const Answer answer = run_program("plan --model llama-3.1-405b --gpus 1 --gbs 1 --format json");
  EXPECT_EQ(answer.status, 1) << answer.err;
  const core::Document report = core::Document::parse_json(answer.out, "stdout");
  EXPECT_TRUE(report.at("plans").as_list().empty());
  EXPECT_FALSE(report.at("rejected").as_list().empty());
}

TEST(Plan, GivesTheSameBytesWhateverTheNumberOfThreads) {
  for (const std::string format : {"table", "json", "csv", "markdown"}) {
    const std::string line = small + " --reproducible --format " + format;
    const Answer one = run_program(line + " --threads 1"),
                 three = run_program(line + " --threads 3");
    EXPECT_EQ(one.status, 0) << one.err;
    EXPECT_EQ(one.out, three.out) << format;
  }
}

TEST(Plan, ListsNamesAndDescribesModels) {
  for (const std::string kind :
       {"models", "gpus", "clusters", "recipes", "schedules", "frameworks"}) {
    const Answer list = run_program("plan --list " + kind);
    EXPECT_EQ(list.status, 0) << kind;
    EXPECT_GE(lines_of(list.out), 2) << kind;
  }
  EXPECT_EQ(json_of("plan model gpt2").at("parameters").as_positive_int(), 124'439'808);
}

TEST(Plan, RefusesBadInputInOneLine) {
  expect_refused("plan", {"--gpus"});
  expect_refused("plan --gpus 0", {"--gpus", "0", "1"});
  expect_refused("plan --gpus 4 --gpu h100-smx", {"--gpu", "h100-smx", "h100-sxm"});
  expect_refused("plan --gpus 4 --model llama-3.1-8", {"--model", "llama-3.1-8", "llama-3.1-8b"});
  expect_refused("plan --gpus 4 --fix tpp=2", {"--fix", "tpp", "tp"});
  expect_refused("plan --gpus 4 --format xml", {"--format", "xml", "table"});
  expect_refused("plan --list model", {"--list", "model", "models"});
  expect_refused("plan --gpus 4 --no-such-flag", {"--no-such-flag"});
  expect_refused("plan --gpus 4 --fromat json", {"--fromat", "--format"});
  expect_refused("plan --gpus 4 --recompte=full", {"--recompte", "--recompute"});
  expect_refused("plan --gpus 4 models", {"models"});
}

}  // namespace

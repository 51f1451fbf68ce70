// `plan` and `simulate --calibrate-with` on the command line: factors, what is kept, complaints.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/io/document.h"
#include "tests/programs/run_program.h"

namespace {

namespace fs = std::filesystem;

const std::string question =
    "simulate --model llama-3.1-8b --gpu a100-sxm-80 --gpus 16 --framework megatron-2021 "
    "--attention unfused --no-better-plans --plan 'tp=4 sp dp=4 mb=1 gbs=64' --format json";

// A database that is not there yet.
std::string database(const std::string& name) {
  const auto file = fs::path(testing::TempDir()) / ("calibrate_with_" + name) / "profiles.sqlite";
  fs::remove_all(file.parent_path());
  return "FORETRAIN_DB=" + file.string();
}

core::Document json_of(const Answer& answer) {
  EXPECT_EQ(answer.status, 0) << answer.err;
  return core::Document::parse_json(answer.out, "stdout");
}

double number(const core::Document& report, const char* key) { return report.at(key).as_real(); }

TEST(CalibrateWith, ScalesTimesByMeasuredOverPredictedAndNarrowsTheInterval) {
  const auto environment = database("scales");
  const auto before = json_of(run_program(question, environment)),
             after = json_of(run_program(question + " --calibrate-with sc21_t1_145.6b", environment));
  EXPECT_TRUE(before.at("calibration").is_null());
  const auto& run = after.at("calibration").at("runs").as_list().at(0);
  EXPECT_EQ(run.at("run").as_text(), "sc21_t1_145.6b");
  const double factor = number(run, "measured_step_time_s") / number(run, "predicted_step_time_s");
  EXPECT_NEAR(number(after.at("calibration").at("factors"), "kernels"), factor, 1e-9);
  EXPECT_NEAR(number(after, "step_time_s"), factor * number(before, "step_time_s"), 1e-5 * number(after, "step_time_s"));
  double sum = 0.0;
  for (const auto& [name, seconds] : after.at("breakdown_s").as_object()) sum += seconds.as_real();
  EXPECT_NEAR(sum, number(after, "step_time_s"), 1e-3 * sum);
  const auto width = [](const core::Document& r) { return number(r, "step_time_high_s") / number(r, "step_time_low_s"); };
  EXPECT_LT(width(after), width(before));
}

TEST(CalibrateWith, KeepsWhatRunsToldAndUsesItOnlyWhenAsked) {
  const auto environment = database("keeps");
  const auto first = run_program(question + " --calibrate-with sc21_t1_145.6b", environment);
  EXPECT_NE(first.err.find("kept for a100-sxm-80 megatron-2021"), std::string::npos) << first.err;
  const auto again = run_program(question + " --calibrate-with stored", environment),
             plain = run_program(question, environment);
  EXPECT_EQ(again.out, first.out);
  EXPECT_TRUE(json_of(plain).at("calibration").is_null());
  const auto listed = run_program("plan --list calibrations", environment);
  EXPECT_NE(listed.out.find("a100-sxm-80 megatron-2021: kernels x"), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("sc21_t1_145.6b"), std::string::npos);
}

TEST(CalibrateWith, WarnsOfRunsThatAreNotComparable) {
  const auto answer =
      run_program("simulate --model llama-3.1-8b --gpus 8 --plan 'tp=2 dp=4' --no-better-plans --calibrate-with sc21_t1_18.4b",
                  database("warns"));
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.err.find("warning: --calibrate-with sc21_t1_18.4b: another GPU (a100-sxm-80, not h100-sxm), other software"),
            std::string::npos)
      << answer.err;
  EXPECT_NE(answer.out.find("not comparable"), std::string::npos);
}

TEST(CalibrateWith, AnswersWithoutKeepingWhereTheDatabaseCannotBeWritten) {
  const auto answer = run_program(question + " --calibrate-with sc21_t1_145.6b", "FORETRAIN_DB=/proc/none/profiles.sqlite");
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.err.find("warning: the calibration was not kept"), std::string::npos) << answer.err;
}

TEST(CalibrateWith, PlanTakesItForAllPlans) {
  const std::string plan =
      "plan --model llama-3.1-8b --gpu a100-sxm-80 --gpus 8 --framework megatron-2021 --attention unfused --gbs 32 --top 2 "
      "--fix 'dp=2 zero=1' --format json --reproducible";
  const auto environment = database("plan");
  const auto before = json_of(run_program(plan, environment)),
             after = json_of(run_program(plan + " --calibrate-with sc21_t1_145.6b", environment));
  const double factor = number(after.at("calibration").at("factors"), "host");
  const auto& plans = after.at("plans").as_list();
  ASSERT_EQ(plans.size(), before.at("plans").as_list().size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto& same = before.at("plans").as_list()[i];
    EXPECT_EQ(plans[i].at("plan").as_text(), same.at("plan").as_text());
    EXPECT_NEAR(number(plans[i], "step_time_s"), factor * number(same, "step_time_s"), 1e-5 * number(same, "step_time_s"));
  }
}

// A log names no GPU: it is the question's.
TEST(CalibrateWith, ReadsALogOfMegatron) {
  const auto log = testing::TempDir() + "/own_run.log";
  std::ofstream(log)
      << "  bf16 ....... True\n  ffn_hidden_size ....... 16384\n  hidden_size ....... 4096\n  micro_batch_size ....... 2\n"
         "  num_attention_heads ....... 32\n  num_layers ....... 32\n  padded_vocab_size ....... 51200\n"
         "  pipeline_model_parallel_size ....... 1\n  seq_length ....... 2048\n  tensor_model_parallel_size ....... 4\n"
         "  world_size ....... 16\n"
         " iteration 1/ 3 | elapsed time per iteration (ms): 9000.0 | global batch size: 64 |\n"
         " iteration 2/ 3 | elapsed time per iteration (ms): 4000.0 | global batch size: 64 |\n"
         " iteration 3/ 3 | elapsed time per iteration (ms): 4000.0 | global batch size: 64 |\n";
  const auto report =
      json_of(run_program("simulate --model llama-3.1-8b --gpu a100-sxm-80 --gpus 16 --no-better-plans --plan 'tp=4 sp dp=4' "
                          "--format json --calibrate-with " +
                              log,
                          database("log")));
  const auto& run = report.at("calibration").at("runs").as_list().at(0);
  EXPECT_DOUBLE_EQ(number(run, "measured_step_time_s"), 4.0);
  EXPECT_EQ(run.at("gpu").as_text(), "a100-sxm-80");
  EXPECT_NEAR(number(report.at("calibration").at("factors"), "kernels"), 4.0 / number(run, "predicted_step_time_s"), 1e-9);
}

TEST(CalibrateWith, RefusesWhatIsNoRun) {
  const std::string simulate = "simulate --model tiny-llama --gpus 2 --plan tp=2 --calibrate-with ";
  expect_refused(simulate + "sc21_t1_18.4", {"--calibrate-with", "did you mean sc21_t1_18.4b?"}, database("refuses"));
  expect_refused(simulate + "stored", {"--calibrate-with stored", "nothing is kept for h100-sxm megatron"},
                 database("refuses"));
  expect_refused(simulate + "stored --calibrate-with sc21_t1_18.4b", {"--calibrate-with stored", "stands alone"},
                 database("refuses"));
  expect_refused(simulate + "/dev/null", {"/dev/null"}, database("refuses"));
}

}  // namespace

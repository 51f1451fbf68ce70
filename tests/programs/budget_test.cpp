// `plan budget` against its contract on the command line (CLI.md).
#include <gtest/gtest.h>

#include <string>

#include "core/io/document.h"
#include "tests/programs/run_program.h"

namespace {

const std::string small = "plan budget --gpus 8 --days 2 --recipes bf16,fp8 --sizes 1B..16B --points 5 --gbs 64";

core::Document json_of(const std::string& line) {
  const Answer answer = run_program(line + " --format json --quiet");
  EXPECT_EQ(answer.status, 0) << answer.err;
  return core::Document::parse_json(answer.out, "stdout");
}

TEST(Budget, SaysTheAnswerInTheFirstLine) {
  const Answer answer = run_program(small);
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_EQ(answer.err, "");
  const auto first = answer.out.substr(0, answer.out.find('\n'));
  for (const char* word : {"parameters", "tokens", "fp8", "dp=", "2.00 days on 8 x h100-sxm", "$1152", "loss"}) {
    EXPECT_NE(first.find(word), std::string::npos) << word << " in " << first;
  }
}

// 8 GPUs x 2 days x 24 hours x $3.
TEST(Budget, ReportsChoicesUnderTheirKeys) {
  const auto report = json_of(small);
  for (const char* key : {"version", "request", "law", "best", "choices", "pareto", "recipes", "searched_sizes",
                          "bounded_sizes", "assumptions", "warnings", "elapsed_s", "sources"}) {
    EXPECT_TRUE(report.has(key)) << key;
  }
  const auto& best = report.at("best");
  for (const auto& choice : report.at("choices").as_list()) {
    EXPECT_GE(choice.at("loss").as_real(), best.at("loss").as_real());
    EXPECT_LE(choice.at("loss_low").as_real(), choice.at("loss").as_real());
    EXPECT_GE(choice.at("loss_high").as_real(), choice.at("loss").as_real());
    EXPECT_DOUBLE_EQ(choice.at("usd").as_real(), 8 * 2 * 24 * 3.0);
    // Tokens are what the GPUs do in that time.
    const double rate = choice.at("tokens_per_s_per_gpu").as_real() * 8 * 86400 * choice.at("days").as_real();
    EXPECT_NEAR(choice.at("tokens").as_real() / rate, 1.0, 1e-9);
  }
}

TEST(Budget, DollarsAndDaysAgree) {
  const std::string one = " --gpus 8 --model llama-3.2-1b --recipes bf16 --gbs 64";
  const auto days = json_of("plan budget --days 2" + one).at("best");
  const auto usd = json_of("plan budget --usd 1152" + one).at("best");
  EXPECT_DOUBLE_EQ(days.at("tokens").as_real(), usd.at("tokens").as_real());
  EXPECT_DOUBLE_EQ(usd.at("days").as_real(), 2.0);
}

// What `plan` says of the size's configuration.
TEST(Budget, AgreesWithPlan) {
  const auto best = json_of("plan budget --days 2 --gpus 8 --model llama-3.2-1b --recipes bf16 --gbs 64").at("best");
  const auto plan = json_of("plan --gpus 8 --model llama-3.2-1b --gbs 64").at("plans").as_list().front();
  EXPECT_EQ(best.at("plan").as_text(), plan.at("plan").as_text());
  EXPECT_DOUBLE_EQ(best.at("step_time_s").as_real(), plan.at("step_time_s").as_real());
}

TEST(Budget, IsReproducible) {
  const std::string line = small + " --format json --reproducible";
  EXPECT_EQ(run_program(line).out, run_program(line + " --threads 1").out);
  EXPECT_EQ(run_program(line).out.find("elapsed_s"), std::string::npos);
}

TEST(Budget, WritesCsvAndMarkdown) {
  const auto csv = run_program(small + " --format csv --quiet").out;
  EXPECT_EQ(csv.substr(0, 27), "model,parameters,active_par");
  EXPECT_GE(lines_of(csv), 3);
  EXPECT_NE(run_program(small + " --format markdown").out.find("| size | tokens |"), std::string::npos);
}

// Hopper has no FP4: said, and no reason to refuse the rest.
TEST(Budget, SaysWhichRecipesAGpuLacks) {
  const auto report = json_of("plan budget --gpus 8 --days 1 --model llama-3.2-1b --recipes bf16,nvfp4 --gbs 64");
  EXPECT_EQ(report.at("unavailable_recipes").as_list().front().at("recipe").as_text(), "nvfp4");
  EXPECT_EQ(report.at("choices").as_list().size(), 1U);
}

TEST(Budget, SaysWhatALawDoesNotKnow) {
  const std::string one = "plan budget --gpus 8 --days 1 --gbs 64 --recipes ";
  const auto experts = run_program(one + "bf16 --model olmoe-1b-7b").out;
  EXPECT_NE(experts.find("takes its loss for that of a dense model"), std::string::npos) << experts;
  const auto few_bits = run_program(one + "fp8 --model llama-3.2-1b").out;
  EXPECT_NE(few_bits.find("no recipe of 16 bits"), std::string::npos) << few_bits;
  EXPECT_NE(few_bits.find("one scale a tensor"), std::string::npos) << few_bits;
}

// 405B on one GPU.
TEST(Budget, FailsWhereNothingFits) {
  const Answer answer = run_program("plan budget --gpus 1 --days 1 --model llama-3.1-405b --recipes bf16 --gbs 64");
  EXPECT_EQ(answer.status, 1);
  EXPECT_NE(answer.out.find("no plan fits"), std::string::npos) << answer.out;
}

TEST(Budget, NamesOptionsWithoutEffect) {
  const Answer answer =
      run_program("plan budget --gpus 8 --days 1 --model llama-3.2-1b --recipes bf16 --gbs 64 --serving-mfu 0.3 --points 4");
  EXPECT_NE(answer.err.find("--serving-mfu: has no effect"), std::string::npos) << answer.err;
  EXPECT_NE(answer.err.find("--points: has no effect"), std::string::npos) << answer.err;
}

TEST(Budget, RefusesBadInput) {
  expect_refused("plan budget --gpus 8", {"--days", "--usd", "--flops", "expected one"});
  expect_refused("plan budget --gpus 8 --days 2 --usd 5", {"found 2", "expected one"});
  expect_refused("plan budget --days 2", {"--gpus", "missing"});
  expect_refused("plan budget --gpus 8 --days -2", {"--days", "positive"});
  expect_refused("plan budget --gpus 8 --flops much", {"--flops", "much"});
  expect_refused("plan budget --gpus 8 --day 2", {"--day", "did you mean --days?"});
  expect_refused("plan budget --gpus 8 --days 2 --recipes fp9", {"fp9", "did you mean fp8?"});
  expect_refused("plan budget --gpus 8 --days 2 --recipes bitnet", {"bitnet", "nvfp4"});
  expect_refused("plan budget --gpus 8 --days 2 --recipes nvfp4", {"--recipes nvfp4", "blackwell"});
  expect_refused("plan budget --gpus 8 --days 2 --law chinchila-epoch", {"did you mean chinchilla-epoch?"});
  expect_refused("plan budget --gpus 8 --days 2 --law kaplan-n-published", {"--law kaplan-n-published", "N and D"});
  expect_refused("plan budget --gpus 8 --days 2 --family lama", {"--family", "lama"});
  expect_refused("plan budget --gpus 8 --days 2 --sizes 7B,lama-3.1-8b", {"lama-3.1-8b", "did you mean llama-3.1-8b?"});
  expect_refused("plan budget --gpus 8 --days 2 --sizes 7B..1B", {"--sizes", "smaller"});
  expect_refused("plan budget --gpus 8 --days 2 --model gpt2 --sizes 1B", {"--sizes", "--model"});
  expect_refused("plan budget --gpus 8 --usd 100 --gpu a40", {"--price"});
}

}  // namespace

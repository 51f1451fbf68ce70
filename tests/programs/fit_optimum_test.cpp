// `fit optimum` on the command line: exit statuses, streams, keys.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/io/document.h"
#include "tests/programs/run_program.h"

namespace {

core::Document json_of(const std::string& line) {
  const auto answer = run_program(line + " --format json");
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_EQ(answer.err, "");
  return core::Document::parse_json(answer.out, "stdout");
}

double number(const core::Document& object, const char* key) { return object.at(key).as_real(); }

TEST(FitOptimum, WritesSizeTokensAndLoss) {
  const auto report = json_of("fit optimum chinchilla-epoch --flops 5.76e23");
  const double N = number(report, "parameters"), D = number(report, "tokens");
  EXPECT_NEAR(6.0 * N * D / 5.76e23, 1.0, 1e-9);
  EXPECT_NEAR(D / N, 17.9, 0.05);  // Besiroglu et al. 2024
  EXPECT_TRUE(report.at("closed_form").as_bool());
  EXPECT_EQ(report.at("counts").as_text(), "total");
  EXPECT_EQ(report.at("warnings").as_list().size(), 0U);
  EXPECT_EQ(report.at("sources").as_list().size(), 1U);
}

TEST(FitOptimum, TakesSizesWithSuffixesAndLists) {
  const auto report = json_of("fit optimum chinchilla-epoch --flops 1e21,1e22 --max-parameters 5B");
  const auto& rows = report.at("optima").as_list();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(number(rows[0], "flops"), 1e21);
  EXPECT_LT(number(rows[0], "parameters"), 5e9);
  EXPECT_NEAR(number(rows[1], "parameters"), 5e9, 10.0);
}

TEST(FitOptimum, PutsRepeatedDataOnAnyChinchilla) {
  const auto plain = json_of("fit optimum chinchilla-epoch --flops 1e22");
  const auto repeated = json_of("fit optimum chinchilla-epoch --flops 1e22 --unique-tokens 20B");
  EXPECT_GT(number(repeated, "loss"), number(plain, "loss"));
  EXPECT_EQ(repeated.at("law").as_text(), "chinchilla-epoch with repeated data");
  EXPECT_GE(repeated.at("warnings").as_list().size(), 1U);
}

TEST(FitOptimum, ChoosesAmongSamplesAndValues) {
  const auto samples = json_of("fit optimum chinchilla-epoch --flops 1e23 --samples 1,100 --queries 1e9 --tokens-a-sample 1000");
  EXPECT_GT(number(samples.at("optima").as_list()[0], "parameters"), number(samples.at("optima").as_list()[1], "parameters"));
  EXPECT_EQ(number(samples, "best"), 1.0);
  const auto experts = json_of("fit optimum krajewski-e64 --flops 1e21 --k 6 --over G=1,16");
  EXPECT_EQ(number(experts, "best"), 16.0);
  const auto bits = json_of("fit optimum kumar-published --flops 1e20 --bits P_w,P_a,P_kv");
  EXPECT_NEAR(number(bits, "bits"), 7.00211, 1e-4 * 7.0);
}

TEST(FitOptimum, HoldsOtherSizesAgainstTheBest) {
  const auto report = json_of("fit optimum chinchilla-epoch --flops 1e22");
  const auto& around = report.at("other_sizes").as_list();
  ASSERT_EQ(around.size(), 4U);
  EXPECT_NEAR(number(around[1], "parameters"), 0.5 * number(report, "parameters"), 1.0);
  for (const auto& size : around) EXPECT_GT(number(size, "loss_above"), 0.0);

  const auto asked = json_of("fit optimum chinchilla-epoch --flops 1e22 --compare 3B,100M");
  const auto& sizes = asked.at("other_sizes").as_list();
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(number(sizes[0], "parameters"), 3e9);
  EXPECT_NEAR(number(sizes[0], "loss") - number(asked, "loss"), number(sizes[0], "loss_above"), 1e-12);
  EXPECT_GT(number(sizes[0], "flops_overhead"), 1.0);
  EXPECT_TRUE(sizes[1].at("flops_overhead").is_null());  // no number of tokens makes 1e8 parameters that good
}

TEST(FitOptimum, ALossOutOfReachIsANegativeAnswer) {
  const auto answer = run_program("fit optimum chinchilla-epoch --loss 1.5");
  EXPECT_EQ(answer.status, 1);
  EXPECT_NE(answer.out.find("does not reach a loss of 1.5"), std::string::npos);
  EXPECT_EQ(answer.err, "");
}

TEST(FitOptimum, WarnsOnTheErrorStream) {
  const auto answer = run_program("fit optimum chinchilla-hoffmann --flops 1e22");
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.err.find("chinchilla-hoffmann-tex has all digits"), std::string::npos);
  EXPECT_EQ(run_program("fit optimum chinchilla-hoffmann --flops 1e22 --quiet").err, "");
}

TEST(FitOptimum, WritesTables) {
  EXPECT_EQ(lines_of(run_program("fit optimum chinchilla-epoch --flops 1e21,1e22 --format csv").out), 3);
  const auto markdown = run_program("fit optimum chinchilla-epoch --flops 1e21,1e22 --format markdown").out;
  EXPECT_NE(markdown.find("| flops | parameters |"), std::string::npos);
}

TEST(FitOptimum, RefusesWhatItDoesNotUnderstand) {
  expect_refused("fit optimum chinchilla-epoch", {"--flops", "found neither"});
  expect_refused("fit optimum chinchilla-epoch --flops 1e21 --loss 2", {"--flops, --loss", "found both"});
  expect_refused("fit optimum chinchilla-epoch --flops many", {"--flops", "many"});
  expect_refused("fit optimum chinchilla-epoch --flosp 1e21", {"--flosp", "nearest is --flops"});
  expect_refused("fit optimum chinchilla-epoch --flops 1e21 --D 1e9", {"--D"});
  expect_refused("fit optimum chinchilla-epoc --flops 1e21", {"chinchilla-epoch"});
  expect_refused("fit optimum krajewski-e64 --flops 1e21 --G 8", {"training FLOPs", "--k"});
  expect_refused("fit optimum krajewski-e64 --flops 1e21 --k 6", {"--G"});
  expect_refused("fit optimum kumar-published --flops 1e21 --bits P_x", {"--P_x"});
  expect_refused("fit optimum chinchilla-epoch --flops 1e21 --compare 1B --N 2B", {"--compare"});
  expect_refused("fit optimum chinchilla-epoch --flops 1e21 --parameters 1B --N 2B", {"--N", "--parameters"});
  expect_refused("fit optimum chinchilla-epoch --flops 1e21 --over G", {"--over", "VARIABLE=VALUE"});
}

}  // namespace

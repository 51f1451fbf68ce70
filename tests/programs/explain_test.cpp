// `simulate --explain` on the command line.
#include <gtest/gtest.h>

#include "core/io/document.h"
#include "tests/programs/run_program.h"

namespace {

const std::string fits = "simulate --model tiny-llama --gpus 2 --plan tp=2 --no-better-plans ";

TEST(Explain, SaysInJsonWhatADurationRestsOn) {
  const Answer answer = run_program(fits + "--format json --explain mlp_up");
  EXPECT_EQ(answer.status, 0) << answer.err;
  const auto report = core::Document::parse_json(answer.out, "stdout");
  const auto& explained = report.at("explained").as_list();
  ASSERT_EQ(explained.size(), 1u);
  const auto& gemm = explained[0];
  EXPECT_EQ(gemm.at("name").as_text(), "mlp_up");
  EXPECT_GT(gemm.at("price_s").as_real(), 0.0);
  EXPECT_FALSE(gemm.at("steps").as_list().empty());
  for (const auto& figure : gemm.at("figures").as_list()) {
    EXPECT_FALSE(figure.at("source").as_text().empty());
    EXPECT_FALSE(figure.at("checked").as_text().empty());
  }
  EXPECT_NEAR(report.at("measured_share").as_real() + report.at("roofline_share").as_real(), 1.0, 1e-9);
}

TEST(Explain, SaysItBelowTheTable) {
  const Answer plain = run_program(fits), answer = run_program(fits + "--explain mlp_up");
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_EQ(answer.out.find(plain.out), 0u);  // the report as it is without, then the explanation
  for (const auto* words : {"mlp_up: gemm, m ", "waves of tiles", "gemm.bf16.efficiency = ", "(derived)", "in the step "})
    EXPECT_NE(answer.out.find(words), std::string::npos) << words;
}

TEST(Explain, RefusesNamesThatAreNoneAndFormatsWithoutIt) {
  expect_refused(fits + "--explain mlp_upp", {"--explain mlp_upp", "did you mean mlp_up?"});
  expect_refused(fits + "--explain mlp_", {"--explain mlp_", "mlp_down", "mlp_up"});
  expect_refused(fits + "--explain mlp_up --format csv", {"--explain", "csv"});
}

}  // namespace

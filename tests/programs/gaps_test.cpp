#include <gtest/gtest.h>

#include "tests/programs/run_program.h"

namespace {

TEST(FitGaps, ComparesItsOwnTable) {
  const auto answer = run_program("fit gaps --format csv");
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_NE(answer.out.find("fp4-nvfp4-8b"), std::string::npos);
  EXPECT_NE(answer.out.find("diverged: no gap"), std::string::npos);
}

TEST(FitGaps, PredictsOneRecipe) {
  const auto answer = run_program("fit gaps --recipe 'w=e2m1/16x16;a,g=e2m1/1x16;SR on grads' --N 8e9 --D 1e12");
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_NE(answer.out.find("by nvfp4 on effective-epoch"), std::string::npos) << answer.out;
  EXPECT_NE(answer.out.find("gap 1.4 (1.1 to 1.8) % of the loss"), std::string::npos) << answer.out;
}

TEST(FitGaps, ListsWhatIsKnown) {
  for (const auto* list : {"recipes", "post-training", "floors"}) EXPECT_GT(lines_of(run_program(std::string("fit gaps --list ") + list).out), 10) << list;
  EXPECT_NE(run_program("fit gaps --list recipes --N 8e9 --D 1e12").out.find("M_N 1.56, M_R 1.83"), std::string::npos);
  EXPECT_NE(run_program("fit gaps --list recipes --speed 1.6").out.find("undecided"), std::string::npos);
  EXPECT_NE(run_program("fit gaps --list post-training --N 6.74e9 --D 2e12").out.find("0.027 (0.017 to 0.049) nats"), std::string::npos);
}

TEST(FitGaps, RefusesWhatItCannotUse) {
  expect_refused("fit gaps no-such-table.csv", {"no-such-table.csv", "cannot be read"});
  expect_refused("fit gaps /", {"cannot be read"});
  expect_refused("fit gaps --N 8e9", {"--N", "--list"});
  expect_refused("fit gaps --list recipes --N many", {"--N", "many", "positive number"});
  expect_refused("fit gaps --speed 2", {"--speed", "--list recipes"});
  expect_refused("fit gaps table.csv --list floors", {"--list", "expected one"});
  expect_refused("fit gaps --recipe 'HiFloat4' --N 8e9 --D 1e12", {"--recipe", "hifloat4"});
  expect_refused("fit gaps --recipe NVFP4 --D 1e12", {"--recipe", "parameters not stated"});
}

}  // namespace

// The search under any number of threads; also what the thread sanitizer runs.
#include <gtest/gtest.h>

#include "planner/search.h"
#include "simulator/request.h"
#include "tests/planner/axes.h"

namespace {

planner::SearchResult search_with(int threads) {
  simulator::Request request;
  request.model = "tiny-llama";
  request.gpus = 4;
  request.global_batch = 16;
  const simulator::Setting setting = simulator::make_setting(request);
  const simulator::Bench bench(setting);
  planner::Question question;
  question.model = &setting.model;
  question.gpus = request.gpus;
  question.global_batch = request.global_batch;
  question.seq = setting.seq;
  question.recipe = request.recipe;
  planner::SearchOptions options;
  options.threads = threads;
  return planner::search(setting, bench, question, planner::plain_axes(question), options);
}

TEST(SearchThreads, GiveTheSameAnswerWhateverTheirNumber) {
  const planner::SearchResult one = search_with(1), four = search_with(4);
  ASSERT_FALSE(one.best.empty());
  ASSERT_EQ(one.best.size(), four.best.size());
  for (std::size_t i = 0; i < one.best.size(); ++i) {
    EXPECT_EQ(core::to_text(one.best[i].plan), core::to_text(four.best[i].plan));
    EXPECT_EQ(one.best[i].time, four.best[i].time);
  }
  EXPECT_EQ(one.searched, four.searched);
  ASSERT_EQ(one.rejected.size(), four.rejected.size());
  for (std::size_t i = 0; i < one.rejected.size(); ++i) {
    EXPECT_EQ(one.rejected[i].reason, four.rejected[i].reason);
    EXPECT_EQ(one.rejected[i].count, four.rejected[i].count);
  }
}

}  // namespace

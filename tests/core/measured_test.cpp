// Tables of measured runs: what is read, and how what cannot be read is refused.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/error.h"
#include "core/measured/csv.h"
#include "core/measured/table.h"

namespace core {
namespace {

const std::string header =
    "id,framework,model_family,layers,hidden,heads,ffn_hidden,vocab,seq_len,gpu,gpus,micro_batch,"
    "global_batch_sequences,precision,"
    "tp,sp,step_time_s,status,simulatable,notes\n";
const std::string row =
    "a,Megatron-LM,gpt3,2,64,4,256,1000,128,A100-80GB-SXM,8,1,16,fp16,2,yes,1.5,ok,yes,\n";

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string refused(const std::string& text) {
  return complaint([&] { parse_measured_table(text, "t.csv"); });
}

TEST(Csv, ReadsQuotesAndLineBreaksInThem) {
  const auto rows = parse_csv("a,\"b,\"\"c\"\"\nd\",\r\n\ne,f,g", "t.csv");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].cells, (std::vector<std::string>{"a", "b,\"c\"\nd", ""}));
  EXPECT_EQ(rows[1].cells, (std::vector<std::string>{"e", "f", "g"}));
  EXPECT_EQ(rows[1].line, 4);  // the quoted cell takes two lines, and one is empty
}

TEST(Csv, QuotesWhatNeedsIt) {
  EXPECT_EQ(csv_quoted("plain"), "plain");
  EXPECT_EQ(csv_quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
}

TEST(Csv, RefusesQuotesThatDoNotClose) {
  EXPECT_EQ(complaint([] { parse_csv("a\n\"b", "t.csv"); }),
            "t.csv: line 2: a quoted cell begins here, expected a quote and a comma at its end");
  EXPECT_NE(complaint([] { parse_csv("a\nb\"c", "t.csv"); }).find("line 2"), std::string::npos);
}

TEST(MeasuredTable, KeepsEmptyCellsApartFromZero) {
  const auto table = parse_measured_table(header + row, "t.csv");
  ASSERT_EQ(table.runs.size(), 1U);
  const auto& run = table.runs.front();
  EXPECT_EQ(run.id, "a");
  EXPECT_EQ(run.line, 2);
  EXPECT_EQ(run.layers, 2);
  EXPECT_EQ(run.step_time_s, 1.5);
  EXPECT_EQ(run.sp, true);
  EXPECT_EQ(run.pp, std::nullopt);
  EXPECT_EQ(run.overlap_grad_reduce, std::nullopt);
  EXPECT_FALSE(run.out_of_memory);
  EXPECT_TRUE(run.simulatable);
}

TEST(MeasuredTable, RecognisesTheTablesByTheirHeaders) {
  const auto vtrain = parse_measured_table(
      "id,params_total_b,gpu,gpus,gpus_per_node,layers,hidden,heads,seq_len,tp,dp,pp,micro_batch,"
      "global_batch_sequences,recompute,"
      "schedule,step_time_s_is_ms_over_1000,iteration_time_ms\n"
      "v,3.6,A100,64,8,30,3072,32,2048,1,64,1,8,512,full,1f1b,3.5665,3566.5\n",
      "v.csv");
  EXPECT_EQ(vtrain.schema, MeasuredSchema::vtrain);
  EXPECT_EQ(vtrain.runs.front().params_total, 3.6e9);
  EXPECT_EQ(vtrain.runs.front().step_time_s, 3.5665);
  const auto tests = parse_measured_table(
      "id,test_case,gpu,gpus,layers,hidden,heads,seq_len,micro_batch,global_batch_sequences,max_"
      "mem_allocated_gib,swiglu,sp\n"
      "m,gpt/x,H100-80GB,8,12,512,8,1024,4,32,2.25,True,\n",
      "m.csv");
  EXPECT_EQ(tests.schema, MeasuredSchema::functional_tests);
  EXPECT_EQ(tests.runs.front().peak_memory_gb, 2.25);
  EXPECT_EQ(tests.runs.front().swiglu, true);
  EXPECT_EQ(tests.runs.front().sp, std::nullopt);
}

TEST(MeasuredTable, NamesLineAndColumnOfABadCell) {
  std::string bad = row;
  bad.replace(bad.find(",8,1,16"), 3, ",many,");
  EXPECT_EQ(
      refused(header + row.substr(0, 1) + "b" + row.substr(1) + bad),
      "t.csv: line 3, column 11 (gpus): found \"many\", expected a whole number of 0 or more");
  bad = row;
  bad.replace(bad.find("1.5"), 3, "-1");
  EXPECT_EQ(refused(header + bad),
            "t.csv: line 2, column 17 (step_time_s): found \"-1\", expected a number of 0 or more");
  bad = row;
  bad.replace(bad.find("yes,1.5"), 3, "maybe");
  EXPECT_EQ(refused(header + bad),
            "t.csv: line 2, column 16 (sp): found \"maybe\", expected yes or no");
  bad = row;
  bad.replace(bad.find(",ok,"), 4, ",fine,");
  EXPECT_EQ(refused(header + bad),
            "t.csv: line 2, column 18 (status): found \"fine\", expected oom or ok");
}

TEST(MeasuredTable, RefusesHeadersThatItDoesNotKnow) {
  EXPECT_EQ(refused("id,framwork\n"),
            "t.csv: line 1, column 2: \"framwork\": unknown column; did you mean framework?");
  EXPECT_EQ(refused("id,id\n"),
            "t.csv: line 1, column 2: \"id\": this column stands twice, expected once");
  EXPECT_EQ(refused("id,framework\n"),
            "t.csv: line 1: missing column model_family of a table of training runs");
  EXPECT_EQ(refused(""), "t.csv: empty, expected a header and rows of measured runs");
}

TEST(MeasuredTable, RefusesRowsThatDoNotFitTheHeader) {
  EXPECT_EQ(refused(header + "a,b\n"),
            "t.csv: line 2: found 2 cells, expected 20 as in the header");
  EXPECT_EQ(refused(header + row + row), "t.csv: line 3: id a stands twice, expected once");
}

// The shipped table holds figures alone: no row of it is lost.
TEST(MeasuredTable, ReadsTheShippedRuns) {
  const auto table = read_measured_table(FORETRAIN_SOURCE_DIR "/data/measured/runs.csv");
  EXPECT_EQ(table.schema, MeasuredSchema::training_runs);
  EXPECT_EQ(table.runs.size(), 66U);
  for (const auto& run : table.runs) EXPECT_FALSE(run.source_ref.empty()) << run.id;
}

}  // namespace
}  // namespace core

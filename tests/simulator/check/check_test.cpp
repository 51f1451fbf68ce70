// What a check makes of its rows: summaries and rankings worked out by hand, bounds, baselines, and
// a table with every kind of row.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "core/error.h"
#include "core/measured/table.h"
#include "simulator/check/baseline.h"
#include "simulator/check/bounds.h"
#include "simulator/check/plan_choice.h"
#include "simulator/check/report.h"
#include "simulator/check/summary.h"

namespace simulator {
namespace {

// A row that was predicted: so far off in time and memory.
CheckedRow made_row(const std::string& id,
                    const std::string& source,
                    std::optional<double> time,
                    std::optional<double> memory = {},
                    Fits fits = Fits::yes,
                    bool out_of_memory = false) {
  CheckedRow row;
  row.run.id = id;
  row.run.out_of_memory = out_of_memory;
  row.source = source;
  row.measured.emplace();
  row.predicted.emplace();
  row.predicted->fits = fits;
  row.step_time_error = time;
  row.memory_error = memory;
  return row;
}

TEST(Summary, MediansMeansAndPercentiles) {
  const auto s = summary_of({0.1, -0.2, 0.3, -0.4});
  EXPECT_EQ(s.n, 4U);
  EXPECT_NEAR(s.median_abs, 0.25, 1e-12);
  EXPECT_NEAR(s.mean_abs, 0.25, 1e-12);
  EXPECT_NEAR(s.p90_abs, 0.3 + 0.7 * 0.1, 1e-12);  // rank 0.9 x 3 = 2.7
  EXPECT_NEAR(s.bias, -0.05, 1e-12);
  EXPECT_EQ(summary_of({}).n, 0U);
  EXPECT_NEAR(quantile({3.0, 1.0, 2.0}, 0.5), 2.0, 1e-12);
}

TEST(Summary, CallsBorderlineNeitherRightNorWrong) {
  const std::vector<CheckedRow> rows = {
      made_row("a", "s", 0.1),
      made_row("b", "s", 0.1, {}, Fits::no),  // ran: called out of memory
      made_row("c", "s", {}, {}, Fits::no, true),
      made_row("d", "s", {}, {}, Fits::yes, true),  // did not run: called to fit
      made_row("e", "s", 0.1, {}, Fits::borderline),
      made_row("f", "s", {}, {}, Fits::borderline, true),
  };
  const auto oom = summarise_all(rows).oom;
  EXPECT_EQ(oom.n, 6U);
  EXPECT_EQ(oom.correct, 2U);
  EXPECT_EQ(oom.false_ooms, 1U);
  EXPECT_EQ(oom.false_fits, 1U);
  EXPECT_EQ(oom.borderline, 2U);
}

TEST(PlanChoice, KendallsTauCountsPairs) {
  EXPECT_NEAR(kendall_tau({1, 2, 3, 4}, {1, 2, 3, 4}), 1.0, 1e-12);
  EXPECT_NEAR(kendall_tau({1, 2, 3, 4}, {4, 3, 2, 1}), -1.0, 1e-12);
  EXPECT_NEAR(
      kendall_tau({1, 2, 3, 4}, {1, 2, 4, 3}), 4.0 / 6.0, 1e-12);  // one of six pairs the other way
  EXPECT_NEAR(kendall_tau({1, 1, 2}, {1, 2, 3}),
              2.0 / std::sqrt(2.0 * 3.0),
              1e-12);  // one pair tied in one of them
  EXPECT_EQ(kendall_tau({1, 1}, {1, 2}), 0.0);
}

// Ranked first is the plan of 12 s where 10 s was possible; the fastest comes third.
TEST(PlanChoice, MeasuresWhatTheFirstPlanCosts) {
  std::vector<CheckedRow> rows;
  const double predicted[] = {1, 2, 3, 4}, measured[] = {12, 15, 10, 20};
  for (std::size_t i = 0; i < 4; ++i) {
    auto row = made_row("p" + std::to_string(i), "s", 0.0);
    row.plan = "plan " + std::to_string(i);
    row.predicted->step_time_s = predicted[i], row.measured->step_time_s = measured[i];
    rows.push_back(row);
  }
  const auto groups = plan_groups(rows);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].plans, 4U);
  EXPECT_NEAR(groups[0].first_extra, 0.2, 1e-12);
  EXPECT_NEAR(groups[0].best_of_three_extra, 0.0, 1e-12);
  EXPECT_TRUE(groups[0].fastest_in_first_three);
  EXPECT_NEAR(groups[0].kendall_tau,
              2.0 / 6.0,
              1e-12);  // 12-15, 12-20, 15-20, 10-20 agree, 12-10 and 15-10 do not
  rows.pop_back();
  EXPECT_TRUE(plan_groups(rows).empty());
}

TEST(Bounds, NameWhatIsOver) {
  const std::vector<CheckedRow> rows = {made_row("a", "s", -0.3, 0.2),
                                        made_row("b", "s", 0.1, 0.02)};
  EXPECT_TRUE(over({.error = 0.2, .row_error = 0.3, .memory_error = 0.12}, rows).empty());
  EXPECT_EQ(over({.error = 0.19, .row_error = {}, .memory_error = {}}, rows),
            std::vector<std::string>{
                "source s: median step time error 20.00 %, at most 19.00 % asked for"});
  EXPECT_EQ(over({.error = {}, .row_error = 0.25, .memory_error = {}}, rows),
            std::vector<std::string>{"a: step time error 30.00 %, at most 25.00 % asked for"});
  EXPECT_EQ(over({.error = {}, .row_error = {}, .memory_error = 0.1}, rows).size(), 1U);
  EXPECT_EQ(parse_share("10%", "--x"), 0.1);
  EXPECT_EQ(parse_share("0.25", "--x"), 0.25);
  EXPECT_THROW(parse_share("ten", "--x"), core::InputError);
  EXPECT_THROW(parse_share("-1%", "--x"), core::InputError);
}

TEST(Baseline, ReadsBackWhatItWrites) {
  std::vector<CheckedRow> rows = {made_row("a", "s", 0.1234567, -0.05),
                                  made_row("b", "t", {}, {}, Fits::no, true)};
  rows.push_back(made_row("c", "t", 0.1));
  rows.back().skipped_because = "no";
  const auto baseline = baseline_of(rows, "first", {0.02, 0.03, 0.01});
  const auto file = testing::TempDir() + "/baseline.json";
  std::ofstream(file) << to_json(baseline);
  const auto again = read_baseline(file);
  EXPECT_EQ(again.reason, "first");
  EXPECT_EQ(again.tolerances.time, 0.02);
  EXPECT_EQ(again.tolerances.memory, 0.03);
  EXPECT_EQ(again.tolerances.summary, 0.01);
  EXPECT_FALSE(again.rows.contains("c"));  // a skipped row has nothing to hold
  EXPECT_EQ(again.rows, baseline.rows);
  EXPECT_EQ(again.sources, baseline.sources);
  EXPECT_TRUE(compare_with(again, rows, again.tolerances).failures.empty());
}

TEST(Baseline, FailsOnWhatGotWorseAlone) {
  const std::vector<CheckedRow> before = {made_row("a", "s", 0.10, 0.05),
                                          made_row("b", "s", -0.10, 0.05)};
  const auto baseline = baseline_of(before, "first", {});
  // Half a point of time within the tolerance; better memory; the sign does not matter.
  EXPECT_TRUE(compare_with(baseline,
                           {made_row("a", "s", -0.105, 0.01), made_row("b", "s", 0.01, 0.05)},
                           {0.01, 0.01})
                  .failures.empty());
  const auto worse = compare_with(
      baseline, {made_row("a", "s", 0.12, 0.05), made_row("b", "s", -0.10, 0.07)}, {0.01, 0.01, 0.01});
  // Row a's time, row b's memory; of the source and of all rows both medians and means moved by a
  // point, which is allowed.
  ASSERT_EQ(worse.failures.size(), 2U);
  EXPECT_EQ(worse.failures[0],
            "a: step time error +12.00 %, +10.00 % in the baseline, 1.00 points allowed");
  EXPECT_EQ(worse.failures[1],
            "b: memory error +7.00 %, +5.00 % in the baseline, 1.00 points allowed");
  EXPECT_TRUE(compare_with(baseline,
                           {made_row("a", "s", 0.12, 0.05), made_row("b", "s", -0.10, 0.07)},
                           {0.05, 0.05, 0.01})
                  .failures.empty());
}

// Two rows that each lose .8 points move the median and mean of their source by as much.
TEST(Baseline, HoldsSummariesCloserThanRows) {
  const auto baseline = baseline_of({made_row("a", "s", 0.10), made_row("b", "s", -0.10)}, "first", {});
  const std::vector<CheckedRow> worse = {made_row("a", "s", 0.108), made_row("b", "s", -0.108)};
  const auto failures = compare_with(baseline, worse, {0.01, 0.01, 0.005}).failures;
  ASSERT_EQ(failures.size(), 4U);  // median and mean, of all and of the source
  EXPECT_EQ(failures.back(),
            "source s: mean step time error +10.80 %, +10.00 % in the baseline, 0.50 points allowed");
  EXPECT_TRUE(compare_with(baseline, worse, {0.01, 0.01, 0.01}).failures.empty());
}

TEST(Baseline, FailsOnWrongVerdictsAndLostRows) {
  const auto baseline =
      baseline_of({made_row("a", "s", 0.1), made_row("b", "s", 0.1)}, "first", {});
  auto skipped = made_row("a", "s", {});
  skipped.skipped_because = "unknown GPU";
  const auto lost = compare_with(baseline, {skipped, made_row("b", "s", 0.1)}, {});
  ASSERT_FALSE(lost.failures.empty());
  EXPECT_EQ(lost.failures[0], "a: not predicted now: unknown GPU");
  const auto missing =
      compare_with(baseline, {made_row("b", "s", 0.1), made_row("new", "s", 0.1)}, {});
  EXPECT_EQ(missing.failures,
            std::vector<std::string>{"1 of the baseline's 2 rows are not in the tables"});
  EXPECT_EQ(missing.remarks, std::vector<std::string>{"new: not in the baseline"});
  const auto wrong =
      compare_with(baseline, {made_row("a", "s", 0.1, {}, Fits::no), made_row("b", "s", 0.1)}, {});
  EXPECT_EQ(wrong.failures,
            std::vector<std::string>{"a: fits no now, yes in the baseline; it was ok"});
}

// One row each: predicted, out of memory, skipped by the source, skipped by us.
const char* const small_table =
    "id,framework,model_family,layers,hidden,heads,ffn_hidden,vocab,seq_len,gpu,gpus,micro_batch,"
    "global_batch_sequences,precision,"
    "zero_stage_or_fsdp,recompute,attention_backend,flops_convention,tflops_per_gpu_reported,"
    "status,simulatable,notes\n"
    "sc21_t1_small,Megatron-LM,gpt3,24,2304,24,9216,51200,2048,A100-80GB-SXM,32,16,512,fp16,none,"
    "full,unfused,"
    "\"hardware (eq.3)\",137,ok,yes,\n"
    "big_oom,Megatron-LM,gpt3,96,12288,96,49152,51200,2048,A100-80GB-SXM,8,1,8,fp16,none,full,"
    "unfused,,,oom,yes,\n"
    "left_open,Megatron-LM,gpt3,24,2304,24,9216,51200,2048,A100-80GB-SXM,32,16,512,fp16,none,,,,,"
    "ok,no,\"recompute unknown\"\n"
    "odd,Megatron-LM,gpt3,24,2304,24,9216,51200,2048,A100-80GB-SXM,32,16,512,fp7,none,full,unfused,"
    ",,ok,yes,\n";

TEST(Check, PredictsSkipsAloudAndCallsOutOfMemory) {
  const auto rows = check_rows({core::parse_measured_table(small_table, "small.csv")});
  ASSERT_EQ(rows.size(), 4U);
  // 96 B s l h^2 (1 + s / 6h + V / 16lh) FLOPs (arXiv 2104.04473, equation 3) at 137 TFLOP/s on 32
  // GPUs.
  const double b = 512, s = 2048, l = 24, h = 2304, v = 51200;
  const double flops = 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  EXPECT_EQ(rows[0].source, "sc21_t1");
  EXPECT_EQ(rows[0].measured->step_time_from, "tflops_per_gpu_reported");
  EXPECT_NEAR(*rows[0].measured->step_time_s, flops / 137e12 / 32, 1e-6 * flops / 137e12 / 32);
  EXPECT_NEAR(*rows[0].step_time_error,
              rows[0].predicted->step_time_s / *rows[0].measured->step_time_s - 1,
              1e-12);
  EXPECT_NEAR(*rows[0].predicted_tflops_per_gpu, 137 / (1 + *rows[0].step_time_error), 1e-6);
  EXPECT_EQ(rows[1].predicted->fits,
            Fits::no);  // 175 G parameters of 16 bytes on 8 GPUs, not shared out
  EXPECT_EQ(rows[1].step_time_error, std::nullopt);
  EXPECT_EQ(rows[2].skipped_because, "simulatable=no in the source: recompute unknown");
  EXPECT_EQ(rows[3].skipped_because, "precision fp7: no recipe stands for it");
  const auto summary = summarise_all(rows);
  EXPECT_EQ(summary.skipped, 2U);
  EXPECT_EQ(summary.oom.correct, 2U);
}

TEST(Check, LeavesOutWhatStandsInAnEarlierTable) {
  const auto table = core::parse_measured_table(small_table, "small.csv");
  EXPECT_EQ(check_rows({table, table}).size(), 4U);
}

TEST(Check, PrintsTheSameRowsInEveryFormat) {
  CheckReport report;
  report.rows = check_rows({core::parse_measured_table(small_table, "small.csv")});
  report.failures = {"big_oom: something <odd>", "source x: something"};
  for (const auto& text : {check_table(report),
                           check_markdown(report),
                           check_json(report),
                           check_csv(report),
                           check_junit(report)}) {
    for (const auto& row : report.rows) EXPECT_NE(text.find(row.run.id), std::string::npos) << text;
  }
  const auto junit = check_junit(report);
  EXPECT_NE(junit.find("tests=\"5\" failures=\"2\" skipped=\"2\""), std::string::npos) << junit;
  EXPECT_NE(junit.find("&lt;odd&gt;"), std::string::npos);
}

TEST(Measurement, KnowsConventionsByTheirWords) {
  EXPECT_EQ(convention_of(""), FlopsConvention::none);
  EXPECT_EQ(convention_of("hardware (8*P*tokens)"), FlopsConvention::hardware_parameters);
  EXPECT_EQ(convention_of("hardware (eq.3, includes recompute forward)"),
            FlopsConvention::hardware_recompute);
  EXPECT_EQ(convention_of("model, attention counted non-causal (12*L*h*s per token)"),
            FlopsConvention::model_full);
  EXPECT_EQ(convention_of("model: 6*P + non-causal attention (P includes tied embedding)"),
            FlopsConvention::parameters_full);
  EXPECT_EQ(convention_of("model (causal)"), FlopsConvention::model_causal);
  EXPECT_THROW(convention_of("furlongs"), core::InputError);
}

TEST(Prediction, ReadsMemoryAsTheSourceDoes) {
  Prediction p;
  for (const double scale : {1.0, 3.0, 2.0}) {
    StageMemory stage;
    stage.terms_GiB.assign(core::memory_terms, 0.0);
    stage.terms_GiB[core::index_of(core::MemoryTerm::weights)] = 10 * scale;
    stage.terms_GiB[core::index_of(core::MemoryTerm::context)] = 0.5;
    stage.terms_GiB[core::index_of(core::MemoryTerm::communicators)] = 1.5;
    stage.terms_GiB[core::index_of(core::MemoryTerm::fragmentation)] = 1;
    stage.peak_GiB = 10 * scale + 3;
    p.stages.push_back(stage);
  }
  EXPECT_DOUBLE_EQ(p.memory_GiB(MemoryKind::process, MemoryRank::fullest), 33);
  EXPECT_DOUBLE_EQ(p.memory_GiB(MemoryKind::reserved, MemoryRank::fullest), 31);
  EXPECT_DOUBLE_EQ(p.memory_GiB(MemoryKind::allocated, MemoryRank::fullest), 30);
  EXPECT_DOUBLE_EQ(p.memory_GiB(MemoryKind::allocated, MemoryRank::last), 20);
  EXPECT_DOUBLE_EQ(p.memory_GiB(MemoryKind::process, MemoryRank::first_or_last), 23);
}

}  // namespace
}  // namespace simulator

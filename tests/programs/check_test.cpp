// `simulate check` against its contract on the command line (CLI.md): exit statuses, streams, keys,
// baselines.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "core/io/document.h"
#include "tests/programs/data_copy.h"
#include "tests/programs/run_program.h"

namespace {

const std::string shipped = FORETRAIN_SOURCE_DIR "/data/measured/runs.csv";

// The header and the rows of one source of the shipped table.
std::string table_of(const std::string& source) {
  std::ifstream in(shipped);
  const auto file = own_folder().string() + "/" + source + ".csv";
  std::ofstream out(file);
  std::string line;
  std::getline(in, line);
  out << line << '\n';
  while (std::getline(in, line)) {
    if (line.starts_with(source)) out << line << '\n';
  }
  return file;
}

TEST(Check, WritesTheKeysOfTheContract) {
  const Answer answer = run_program("simulate check " + table_of("korth22") + " --format json");
  ASSERT_EQ(answer.status, 0) << answer.err;
  EXPECT_EQ(answer.err, "");
  const auto report = core::Document::parse_json(answer.out, "stdout");
  EXPECT_EQ(report.at("rows").as_list().size(), 6U);
  double inside = 0.0;
  for (const auto& row : report.at("rows").as_list()) {
    for (const char* key : {"id",
                            "gpu",
                            "framework",
                            "predicted_step_time_s",
                            "measured_step_time_s",
                            "step_time_error",
                            "predicted_memory_GiB",
                            "measured_memory_GiB",
                            "memory_error",
                            "predicted_fits",
                            "measured_status",
                            "skipped_because",
                            "assumed",
                            "ignored",
                            "plan",
                            "predicted_step_time_low_s",
                            "predicted_step_time_high_s",
                            "flops_convention"}) {
      EXPECT_TRUE(row.has(key)) << key;
    }
    const double error =
        row.at("predicted_step_time_s").as_real() / row.at("measured_step_time_s").as_real() - 1.0;
    EXPECT_NEAR(row.at("step_time_error").as_real(), error, 1e-12);
    const double measured = row.at("measured_step_time_s").as_real();
    inside += row.at("predicted_step_time_low_s").as_real() <= measured &&
              measured <= row.at("predicted_step_time_high_s").as_real();
  }
  const auto& summary = report.at("summary");
  EXPECT_NEAR(summary.at("step_times_inside_interval").as_real(), inside / 6.0, 1e-12);
  for (const char* key : {"n", "median_abs_error", "mean_abs_error", "p90_abs_error", "bias"}) {
    EXPECT_TRUE(summary.at("step_time").has(key)) << key;
    EXPECT_TRUE(summary.at("memory").has(key)) << key;
  }
  for (const char* key : {"n", "correct", "false_fits", "false_ooms", "borderline"})
    EXPECT_TRUE(summary.at("oom").has(key)) << key;
  EXPECT_EQ(summary.at("skipped").as_int(0, 100), 0);
  for (const char* key : {"by_source", "by_gpu", "by_framework", "by_precision"})
    EXPECT_TRUE(summary.has(key)) << key;
}

TEST(Check, PredictsEveryShippedRow) {
  const Answer answer = run_program("simulate check " + shipped + " --format json");
  ASSERT_EQ(answer.status, 0) << answer.err;
  const auto report = core::Document::parse_json(answer.out, "stdout");
  for (const auto& row : report.at("rows").as_list()) {
    EXPECT_TRUE(row.at("skipped_because").is_null())
        << row.at("id").as_text() << ": " << row.at("skipped_because").as_text();
  }
}

TEST(Check, GivesTheSameBytesAgain) {
  for (const std::string format : {"table", "json", "csv", "markdown", "junit"}) {
    const auto line =
        "simulate check " + table_of("simumax") + " --reproducible --format " + format;
    EXPECT_EQ(run_program(line).out, run_program(line).out) << format;
  }
}

TEST(Check, FailsOverABoundAndSaysWhere) {
  const auto table = table_of("korth22");
  EXPECT_EQ(run_program("simulate check " + table + " --max-error 50%").status, 0);
  const Answer over = run_program("simulate check " + table + " --max-row-error 0.01%");
  EXPECT_EQ(over.status, 1);
  EXPECT_NE(over.err.find("korth22"), std::string::npos) << over.err;
  EXPECT_EQ(run_program("simulate check " + table + " --max-row-error 0.01% --quiet").err, "");
}

TEST(Check, HoldsToABaselineThatItWrote) {
  const auto table = table_of("korth22"), baseline = own_folder().string() + "/korth22.json";
  const auto line = "simulate check " + table + " --baseline " + baseline;
  EXPECT_EQ(run_program(line + " --update --reason first").status, 0);
  EXPECT_EQ(run_program(line).status, 0);
  // An earlier check with an error of 0 everywhere.
  auto text = text_of(baseline);
  for (std::size_t at = 0; (at = text.find("\"step_time_error\": ", at)) != std::string::npos;) {
    at += std::string_view("\"step_time_error\": ").size();
    text.replace(at, text.find(',', at) - at, "0");
  }
  std::ofstream(baseline) << text;
  const Answer worse = run_program(line);
  EXPECT_EQ(worse.status, 1);
  EXPECT_NE(worse.err.find("in the baseline"), std::string::npos) << worse.err;
  EXPECT_EQ(run_program(line + " --time-tolerance 90%").status, 0);
}

// The script of gnuplot has a point for each row, measured then predicted.
TEST(Check, KeepsTheScriptOfAPlotWithItsData) {
  const auto script = own_folder().string() + "/korth22.gp", table = table_of("korth22");
  const auto answer = run_program("simulate check " + table + " --format json --plot " + script);
  ASSERT_EQ(answer.status, 0) << answer.err;
  const auto text = text_of(script);
  EXPECT_NE(text.find("set logscale xy"), std::string::npos);
  EXPECT_NE(text.find("title 'korth22 (6)'"), std::string::npos) << text;
  const auto report = core::Document::parse_json(answer.out, "stdout");
  for (const auto& row : report.at("rows").as_list()) {
    const auto point = fmt::format("\n{:.6g} {:.6g}\n",
                                   row.at("measured_step_time_s").as_real(),
                                   row.at("predicted_step_time_s").as_real());
    EXPECT_NE(text.find(point), std::string::npos) << point;
  }
}

TEST(Check, DrawsPlots) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "there is no gnuplot here";
  const std::map<std::string, std::string> begins = {
      {".svg", "<?xml"}, {".png", "\x89PNG"}, {".pdf", "%PDF"}};
  for (const auto& [suffix, begin] : begins) {
    const auto picture = own_folder().string() + "/korth22" + suffix;
    const auto answer = run_program("simulate check " + table_of("korth22") + " --plot " + picture);
    ASSERT_EQ(answer.status, 0) << answer.err;
    EXPECT_TRUE(text_of(picture).starts_with(begin)) << suffix;
  }
}

TEST(Check, RefusesPlotsThatItCannotDraw) {
  const auto line = "simulate check " + table_of("korth22") + " --plot ", folder = own_folder().string();
  expect_refused(line + folder + "/a.jpg", {"--plot", "a.jpg", ".svg, .png, .pdf or .gp"});
  expect_refused(line + folder + "/none/a.gp", {"--plot", "none/a.gp", "cannot be written"});
  expect_refused(line + folder + "/a.svg", {"--plot", "no gnuplot here", "gnuplot-nox"}, "PATH=" + folder);
}

TEST(Check, TakesALogOfMegatronWithItsGpu) {
  const auto log = own_folder().string() + "/run.log";
  std::ofstream(log)
      << "  num_layers ........ 24\n  hidden_size ........ 1024\n  num_attention_heads ........ "
         "16\n"
         "  padded_vocab_size ........ 51200\n  seq_length ........ 1024\n  micro_batch_size "
         "........ 4\n"
         "  global_batch_size ........ 32\n  tensor_model_parallel_size ........ 2\n  fp16 "
         "........ True\n"
         "  world_size ........ 8\n iteration 1/ 2 | elapsed time per iteration (ms): 500.0 |\n";
  expect_refused("simulate check " + log, {"--gpu", "run.log"});
  const Answer answer = run_program("simulate check " + log + " --gpu a100-sxm-80 --format json");
  ASSERT_EQ(answer.status, 0) << answer.err;
  const auto report = core::Document::parse_json(answer.out, "stdout");
  const auto& row = report.at("rows").as_list().front();
  EXPECT_EQ(row.at("measured_step_time_s").as_real(), 0.5);
  EXPECT_EQ(row.at("plan").as_text(),
            "tp=2 cp=1 pp=1 ep=1 etp=1 dp=4 zero=0 mb=4 gbs=32 schedule=1f1b recompute=none "
            "layers=even overlap=none offload=none recipe=fp16");
}

TEST(Check, RefusesWhatItCannotRead) {
  const auto bad = own_folder().string() + "/bad.csv";
  std::ofstream(bad) << "id,gpu\nx,y\n";
  expect_refused("simulate check " + bad, {"bad.csv", "line 1", "missing column"});
  expect_refused("simulate check nowhere.csv", {"nowhere.csv", "cannot be opened"});
  expect_refused("simulate check", {"files"});
  const auto table = table_of("korth22");
  expect_refused("simulate check " + table + " --max-error ten", {"--max-error", "ten", "10%"});
  expect_refused("simulate check " + table + " --max-eror 10%",
                 {"--max-eror", "did you mean --max-error?"});
  expect_refused("simulate check " + table + " --update", {"--update", "--baseline"});
  expect_refused(
      "simulate check " + table + " --update --baseline " + own_folder().string() + "/b.json",
      {"--reason"});
  expect_refused("simulate check " + table + " --time-tolerance 1%", {"--baseline"});
}

}  // namespace

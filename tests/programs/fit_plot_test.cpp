// Pictures of `fit`, and its laws of best sizes over compute, on the command line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "core/io/document.h"
#include "tests/programs/data_copy.h"
#include "tests/programs/run_program.h"

namespace {

bool has_gnuplot() { return std::system("command -v gnuplot >/dev/null") == 0; }

double loss(double N, double D) { return 1.7 + 400.0 / std::pow(N, 0.31) + 400.0 / std::pow(D, 0.31); }

// Three budgets of seven sizes; at alpha = beta and A = B the best size is the root of C / 6.
std::string budgets() {
  const auto file = own_folder().string() + "/budgets.csv";
  std::ofstream out(file);
  out << "n_params,tokens,flops,loss\n";
  for (const double C : {6e18, 6e19, 6e20}) {
    for (int i = -3; i <= 3; ++i) {
      const double N = std::sqrt(C / 6.0) * std::exp2(0.5 * i), D = C / (6.0 * N);
      out << fmt::format("{:.17g},{:.17g},{:.17g},{:.17g}\n", N, D, C, loss(N, D));
    }
  }
  return file;
}

std::string curves() {
  const auto file = own_folder().string() + "/curves.csv";
  std::ofstream out(file);
  out << "run,n_params,tokens,loss\n";
  for (int i = 0; i < 6; ++i) {
    const double N = 1e7 * std::exp2(i);
    for (double D = 1e6; D < 1e11; D *= 1.1) out << fmt::format("r{},{:.17g},{:.17g},{:.17g}\n", i, N, D, loss(N, D));
  }
  return file;
}

const std::map<std::string, std::string> begins = {{".svg", "<?xml"}, {".png", "\x89PNG"}, {".pdf", "%PDF"}, {".gp", "set encoding utf8"}};

void expect_pictures(const std::string& line, const std::string& name) {
  std::string files;
  for (const auto& [suffix, begin] : begins) files += (files.empty() ? "" : ",") + own_folder().string() + "/" + name + suffix;
  const auto answer = run_program(line + " --plot " + files);
  ASSERT_EQ(answer.status, 0) << answer.err;
  for (const auto& [suffix, begin] : begins) EXPECT_TRUE(text_of(own_folder() / (name + suffix)).starts_with(begin)) << name << suffix;
  // The script has all it needs, and the same input the same picture.
  const auto script = (own_folder() / (name + ".gp")).string(), again = (own_folder() / (name + "-again.pdf")).string();
  EXPECT_EQ(std::system(fmt::format("gnuplot -e 'set terminal dumb' {} >/dev/null 2>&1", script).c_str()), 0) << script;
  ASSERT_EQ(run_program(line + " --plot " + again).status, 0);
  EXPECT_EQ(text_of(again), text_of(own_folder() / (name + ".pdf")));
}

TEST(FitPlot, DrawsEachKind) {
  if (!has_gnuplot()) GTEST_SKIP() << "there is no gnuplot here";
  for (const std::string kind : {"loss", "isoflop", "contour", "residuals"}) {
    expect_pictures(fmt::format("fit chinchilla {} --starts 20 --bootstrap 10 --holdout \"C>1e20\" --plot-kind {}", budgets(), kind), kind);
  }
}

TEST(FitPlot, DrawsBestSizes) {
  if (!has_gnuplot()) GTEST_SKIP() << "there is no gnuplot here";
  expect_pictures("fit chinchilla-isoflop " + budgets(), "best-isoflop");
  expect_pictures("fit chinchilla-isoflop --plot-kind optimum " + budgets(), "best-optimum");
  expect_pictures("fit chinchilla-envelope --bootstrap 10 " + curves(), "best-envelope");
}

TEST(FitPlot, KeepsTheScriptWithItsData) {
  const auto script = own_folder().string() + "/runs.gp";
  const auto answer = run_program("fit chinchilla " + budgets() + " --starts 20 --plot " + script);
  ASSERT_EQ(answer.status, 0) << answer.err;
  const auto text = text_of(script);
  EXPECT_NE(text.find(fmt::format("\n6e+18 {:.7g} 1e+09\n", loss(1e9, 1e9))), std::string::npos) << text;
  EXPECT_NE(text.find("'21 rows of budgets.csv'"), std::string::npos);
}

TEST(FitPlot, RefusesWhatItCannotDraw) {
  const auto line = "fit chinchilla " + budgets() + " --starts 20 --plot ", folder = own_folder().string();
  expect_refused(line + folder + "/a.jpg", {"--plot", "a.jpg", ".svg, .png, .pdf or .gp"});
  expect_refused(line + folder + "/none/a.gp", {"--plot", "none/a.gp", "cannot be written"});
  expect_refused(line + folder + "/a.svg", {"--plot", "no gnuplot here", "gnuplot-nox"}, "PATH=" + folder);
  expect_refused(line + folder + "/a.svg --plot-kind pie", {"--plot-kind", "pie", "contour"});
  expect_refused("fit chinchilla-isoflop " + budgets() + " --plot-kind loss --plot a.png", {"--plot-kind", "loss", "isoflop or optimum"});
}

void expect_keys_of_a_fit(const core::Document& report) {
  for (const char* key : {"version", "law", "formula", "parameters", "objective", "objective_kind", "rows_used", "rows_dropped", "r2_log", "held_out_error",
                          "converged", "starts", "elapsed_s", "warnings", "points", "refused"}) {
    EXPECT_TRUE(report.has(key)) << key;
  }
}

TEST(FitBestSizes, FindsThemOnIsoflopCurves) {
  const auto answer = run_program("fit chinchilla-isoflop " + budgets() + " --format json");
  ASSERT_EQ(answer.status, 0) << answer.err;
  const auto report = core::Document::parse_json(answer.out, "stdout");
  expect_keys_of_a_fit(report);
  EXPECT_NEAR(report.at("parameters").at("a").at("value").as_real(), 0.5, 1e-6);
  EXPECT_NEAR(report.at("parameters").at("b").at("value").as_real(), 0.5, 1e-6);
  EXPECT_NEAR(report.at("parameters").at("N_coefficient").at("value").as_real() * std::sqrt(6.0), 1.0, 1e-6);
  EXPECT_LE(report.at("parameters").at("a").at("low").as_real(), report.at("parameters").at("a").at("high").as_real());
  EXPECT_EQ(report.at("rows_used").as_real(), 21.0);
}

TEST(FitBestSizes, FindsThemOnTheEnvelope) {
  const auto answer = run_program("fit chinchilla-envelope " + curves() + " --bootstrap 20 --format json");
  ASSERT_EQ(answer.status, 0) << answer.err;
  const auto report = core::Document::parse_json(answer.out, "stdout");
  expect_keys_of_a_fit(report);
  EXPECT_NEAR(report.at("parameters").at("a").at("value").as_real(), 0.5 * (1.0 - 1.0 / 16.0), 0.01);  // four steps of size
}

TEST(FitBestSizes, WritesEachFormat) {
  const auto line = "fit chinchilla-isoflop --reproducible " + budgets();
  EXPECT_EQ(run_program(line + " --format csv --quiet").out.rfind("parameter,value,low,high,fixed\na,", 0), 0U);
  EXPECT_NE(run_program(line + " --format markdown --quiet").out.find("| parameter | value | interval |"), std::string::npos);
  const auto table = run_program(line);
  EXPECT_NE(table.out.find("warning: a parabola in ln N"), std::string::npos);
  EXPECT_EQ(table.out, run_program(line).out);
  EXPECT_EQ(run_program(line + " --format csv --quiet").err, "");
  EXPECT_NE(run_program(line + " --format csv").err.find("2603.22339"), std::string::npos);
}

TEST(FitBestSizes, RefusesBadInput) {
  const auto table = budgets();
  expect_refused("fit chinchilla-isoflop " + table + " --columns X", {"--columns", "X", "VARIABLE=COLUMN"});
  expect_refused("fit chinchilla-isoflop " + table + " --where \"C>1e20\"", {"1 budgets", "expected two"});
  expect_refused("fit chinchilla-isoflop nowhere.csv", {"nowhere.csv"});
  expect_refused("fit chinchilla-isoflop " + table + " --wthin 0.1", {"--wthin", "did you mean --within?"});
  expect_refused("fit chinchilla-envelope " + table, {"one loss", "expected"});
  EXPECT_NE(run_program("fit chinchilla-isoflop --last 0.2 --format csv " + table).err.find("--last: has no effect"), std::string::npos);
}

TEST(FitByProjection, FindsTheConstants) {
  const auto answer = run_program("fit chinchilla " + budgets() + " --method vp --bootstrap 20 --format json");
  ASSERT_EQ(answer.status, 0) << answer.err;
  const auto report = core::Document::parse_json(answer.out, "stdout");
  EXPECT_EQ(report.at("solver").as_text(), "variable projection");
  EXPECT_NEAR(report.at("parameters").at("alpha").at("value").as_real(), 0.31, 1e-6);
  EXPECT_NEAR(report.at("parameters").at("beta").at("value").as_real(), 0.31, 1e-6);
  EXPECT_NEAR(report.at("derived").at("a").at("high").as_real(), 0.5, 1e-5);
  expect_refused("fit chinchilla " + budgets() + " --method vp --fix E=1", {"--method vp", "--fix"});
  expect_refused("fit general-q " + budgets() + " --method vp", {"--method vp", "general-q", "chinchilla"});
}

TEST(FitBestSizes, AreListed) { EXPECT_NE(run_program("fit --list").out.find("chinchilla-isoflop"), std::string::npos); }

}  // namespace

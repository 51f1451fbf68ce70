#include "fitting/plots/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "fitting/best_sizes/budgets.h"
#include "fitting/plots/plane.h"

namespace fitting {
namespace {

FittedLaw chinchilla(const std::vector<double>& parameters) {
  FittedLaw law;
  law.law = law_of("chinchilla");
  law.parameters = parameters;
  return law;
}

const std::vector<double> constants = {400.0, 1200.0, 1.7, 0.34, 0.28};  // A, B, E, alpha, beta

// Three budgets of five sizes, on the law.
Rows rows() {
  Rows all;
  all.columns.resize(2);
  for (const double C : {1e19, 1e20, 1e21}) {
    for (const double N : {1e8, 2e8, 4e8, 8e8, 1.6e9}) {
      const double D = C / (6.0 * N);
      all.columns[0].push_back(N), all.columns[1].push_back(D);
      all.measured.push_back(1.7 + 400.0 / std::pow(N, 0.34) + 1200.0 / std::pow(D, 0.28));
    }
  }
  return all;
}

std::string script(PlotKind kind, const FittedLaw& law, const Rows& runs) { return law_figure({law, runs, {}, "15 rows of a.csv", 0.95}, kind, "--plot-kind").script("", ""); }

// Hoffmann et al. 2022, Eq. 4.
TEST(LawPlane, FindsTheBestSize) {
  const auto law = chinchilla(constants);
  const auto runs = rows();
  const LawPlane plane(law, runs);
  for (const double C : {1e18, 1e21, 1e25}) {
    const double expected = std::pow(0.34 * 400.0 / (0.28 * 1200.0), 1.0 / 0.62) * std::pow(C / 6.0, 0.28 / 0.62);
    ASSERT_TRUE(plane.best_size(C, 1e5, 1e13, law.parameters));
    EXPECT_NEAR(*plane.best_size(C, 1e5, 1e13, law.parameters) / expected, 1.0, 1e-4);
  }
  EXPECT_FALSE(plane.best_size(1e21, 1e12, 1e13, law.parameters));
  EXPECT_DOUBLE_EQ(plane.tokens(1e9, 6e21), 1e12);
  EXPECT_NEAR(*plane.compute_for(1e9, plane.loss(1e9, 3e21), 1e18, 1e25) / 3e21, 1.0, 1e-10);
  EXPECT_FALSE(plane.compute_for(1e9, 1.7, 1e18, 1e25));
}

TEST(LawPlane, HoldsOtherVariablesAsTheRunsHaveThem) {
  FittedLaw law;
  law.law = law_of("data-constrained");
  Rows runs;
  for (const auto& variable : law.law.variables) {
    runs.columns.push_back(variable.name == "U" ? std::vector<double>{1e10, 2e10, 1e10} : std::vector<double>{1e9, 1e9, 2e9});
  }
  runs.measured = {3.0, 3.0, 3.0};
  EXPECT_NE(LawPlane(law, runs).held().find("U = 1e+10"), std::string::npos);
}

TEST(Plot, HasAPointForEachRun) {
  const auto law = chinchilla(constants);
  const auto runs = rows();
  const auto loss = script(PlotKind::loss, law, runs), isoflop = script(PlotKind::isoflop, law, runs), contour = script(PlotKind::contour, law, runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const double N = runs.columns[0][i], C = 6.0 * N * runs.columns[1][i], L = runs.measured[i];
    const auto line = [](double a, double b, double c) {
      char text[80];
      std::snprintf(text, sizeof text, "\n%.7g %.7g %.7g\n", a, b, c);
      return std::string(text);
    };
    EXPECT_NE(loss.find(line(C, L, N)), std::string::npos) << line(C, L, N);
    EXPECT_NE(contour.find(line(C, N, L)), std::string::npos) << line(C, N, L);
    EXPECT_NE(isoflop.find(line(N, L, C)), std::string::npos) << line(N, L, C);
  }
  EXPECT_NE(loss.find("alpha = 0.34"), std::string::npos);
  EXPECT_NE(loss.find("'15 rows of a.csv'"), std::string::npos);
}

TEST(Plot, ShowsNoResidualsOnTheLaw) {
  auto runs = rows();
  runs.measured[7] *= std::exp(0.02);
  const auto residuals = script(PlotKind::residuals, chinchilla(constants), runs);
  EXPECT_NE(residuals.find("\n1e+20 2 4e+08\n"), std::string::npos) << residuals;
  EXPECT_NE(residuals.find("median of |residual|"), std::string::npos);
}

TEST(Plot, DrawsHeldOutRunsOpen) {
  const auto law = chinchilla(constants);
  const auto runs = rows();
  std::vector<bool> held_out(runs.size(), false);
  EXPECT_EQ(law_figure({law, runs, held_out, "", 0.95}, PlotKind::loss, "").script("", "").find("held out"), std::string::npos);
  held_out.back() = true;
  EXPECT_NE(law_figure({law, runs, held_out, "", 0.95}, PlotKind::loss, "").script("", "").find("title 'held out'"), std::string::npos);
}

TEST(Plot, HasABandWhereTheLawHasDraws) {
  auto law = chinchilla(constants);
  EXPECT_EQ(script(PlotKind::contour, law, rows()).find("filledcurves"), std::string::npos);
  law.draws = {{400.0, 1200.0, 1.7, 0.34, 0.29}, {400.0, 1200.0, 1.7, 0.34, 0.27}};
  EXPECT_NE(script(PlotKind::contour, law, rows()).find("filledcurves"), std::string::npos);
}

TEST(Plot, DrawsALawWithoutRuns) {
  const auto law = fitted_law("chinchilla-epoch");
  EXPECT_NE(script(PlotKind::contour, law, {}).find("compute-optimal size"), std::string::npos);
  EXPECT_THROW(script(PlotKind::loss, law, {}), core::InputError);
}

TEST(Plot, RefusesWhatALawDoesNotHave) {
  FittedLaw law;
  law.law = law_of("kaplan-n");
  law.parameters = {0.076, 8.8e13};
  Rows runs;
  runs.columns = {{1e6, 1e8}};
  runs.measured = {4.0, 3.0};
  EXPECT_THROW(script(PlotKind::contour, law, runs), core::InputError);
  EXPECT_THROW(script(PlotKind::isoflop, law, runs), core::InputError);
  EXPECT_NE(script(PlotKind::loss, law, runs).find("\n1000000 4\n"), std::string::npos);
  EXPECT_THROW(plot_kind("pie", "--plot-kind"), core::InputError);
  auto scattered = rows();
  for (std::size_t i = 0; i < scattered.size(); ++i) scattered.columns[1][i] *= 1.0 + 0.2 * static_cast<double>(i);
  EXPECT_THROW(script(PlotKind::isoflop, chinchilla(constants), scattered), core::InputError);
}

TEST(Plot, HoldsTheTextOfOthersInQuotes) {
  Figure figure;
  figure.title({"it's a_file.csv"});
  figure.x(linear_axis("x", {0.0, 1.0}));
  figure.y(log_axis("y", {1.0, 1e6}));
  figure.add({{0.0, 1.0}}, "using 1:2 with points", "an 'odd' name");
  const auto text = figure.script("", "");
  EXPECT_NE(text.find("set title 'it''s a_file.csv' noenhanced"), std::string::npos) << text;
  EXPECT_NE(text.find("title 'an ''odd'' name' noenhanced"), std::string::npos) << text;
  EXPECT_NE(text.find("'10^{4}' 10000"), std::string::npos) << text;
}

TEST(Plot, BreaksLongTitles) {
  EXPECT_EQ(wrapped("one two three", 8), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("onetwothree", 4), (std::vector<std::string>{"onet", "woth", "ree"}));
}

TEST(Plot, TakesFilesOneByOneOrInAList) {
  EXPECT_EQ(plot_files({"a.png,b.gp", "c.svg"}, "--plot").size(), 3U);
  EXPECT_THROW(plot_files({"a.png,"}, "--plot"), core::InputError);
  EXPECT_THROW(plot_files({"a.jpg"}, "--plot"), core::InputError);
}

TEST(Budgets, JoinComputesThatDifferByLittle) {
  const auto budgets = budgets_of({1e19, 3e19, 1.04e19, 1.08e19}, 0.05);
  ASSERT_EQ(budgets.size(), 3U);
  EXPECT_EQ(budgets[0].rows, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(budgets[1].rows, (std::vector<std::size_t>{3}));
  EXPECT_EQ(spread(10, 4), (std::vector<std::size_t>{0, 3, 6, 9}));
  EXPECT_EQ(spread(2, 4), (std::vector<std::size_t>{0, 1}));
}

}  // namespace
}  // namespace fitting

#include "fitting/plots/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "core/io/document.h"
#include "fitting/plots/plane.h"
#include "fitting/plots/plot_kinds.h"

namespace fitting {

PlotKind plot_kind(std::string_view text, const std::string& flag) {
  constexpr std::array<std::pair<std::string_view, PlotKind>, 4> kinds = {
      {{"loss", PlotKind::loss}, {"isoflop", PlotKind::isoflop}, {"contour", PlotKind::contour}, {"residuals", PlotKind::residuals}}};
  for (const auto& [name, kind] : kinds) {
    if (name == text) return kind;
  }
  throw core::InputError(fmt::format("{}: found \"{}\", expected loss, isoflop, contour or residuals", flag, core::printable(text)));
}

Figure law_figure(const LawPicture& picture, PlotKind kind, const std::string& flag) {
  if ((kind == PlotKind::isoflop || kind == PlotKind::contour) && !has_plane(picture.law.law)) {
    throw core::InputError(fmt::format("{}: found {}, expected a law of N and D whose training FLOPs are known", flag, picture.law.law.name));
  }
  if (picture.rows.size() == 0 && kind != PlotKind::contour) throw core::InputError(fmt::format("{}: found no runs, expected some, or the kind contour", flag));
  switch (kind) {
    case PlotKind::loss: return loss_figure(picture);
    case PlotKind::isoflop: return isoflop_figure(picture, flag);
    case PlotKind::contour: return contour_figure(picture);
    case PlotKind::residuals: return residual_figure(picture);
  }
  CORE_ASSERT(false);
}

std::vector<double> point_of(const LawPicture& picture, std::size_t row) {
  std::vector<double> at;
  for (const auto& column : picture.rows.columns) at.push_back(column[row]);
  return at;
}

std::vector<double> compute_of(const LawPicture& picture) {
  std::vector<double> C;
  for (std::size_t i = 0; i < picture.rows.size(); ++i) C.push_back(training_flops(picture.law.law, point_of(picture, i)));
  return C;
}

Abscissa abscissa_of(const LawPicture& picture) {
  const auto& law = picture.law.law;
  if (!law.training_flops.empty()) return {"training FLOPs", compute_of(picture)};
  const auto& variable = law.variables.front();
  return {fmt::format("{}: {}", variable.name, variable.meaning), picture.rows.columns.empty() ? std::vector<double>{} : picture.rows.columns.front()};
}

const std::vector<double>* column_of(const LawPicture& picture, std::string_view name) {
  const auto& variables = picture.law.law.variables;
  for (std::size_t v = 0; v < variables.size() && v < picture.rows.columns.size(); ++v) {
    if (variables[v].name == name) return &picture.rows.columns[v];
  }
  return nullptr;
}

std::vector<std::string> title_of(const LawPicture& picture) {
  const auto& law = picture.law.law;
  constexpr std::size_t width = 96;
  auto lines = wrapped(fmt::format("{}: {} = {}", law.name, law.output, law.formula), width);
  std::string constants;
  for (std::size_t j = 0; j < law.parameters.size(); ++j) {
    constants += fmt::format("{}{} = {:.4g}", j > 0 ? ",  " : "", law.parameters[j].name, picture.law.parameters[j]);
  }
  for (auto& line : wrapped(constants, width)) lines.push_back(std::move(line));
  if (!picture.runs.empty()) lines.push_back(picture.runs);
  return lines;
}

std::string output_label(const Law& law) {
  return law.output == "L" ? fmt::format("loss, {}", law.output_meaning) : fmt::format("{}: {}", law.output, law.output_meaning);
}

std::vector<double> distinct(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::vector<double> kept;
  for (const double v : values) {
    if (kept.empty() || v > 1.03 * kept.back()) kept.push_back(v);
  }
  return kept;
}

}  // namespace fitting

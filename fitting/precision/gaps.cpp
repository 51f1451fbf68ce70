#include "fitting/precision/gaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "fitting/precision/gap_prediction.h"

namespace fitting {
namespace {

// Why a row has no gap to compare; "" where it has one.
std::string without_gap(const GapRow& row) {
  const auto noted = [&](std::string_view word) { return row.notes.find(word) != std::string::npos; };
  if (row.metric == "none" || row.metric == "speed_ratio") return "states a speed, no loss";
  if (row.metric == "tokens_to_target") return "states extra tokens to a target, no gap of the loss";
  if (noted("DIVERGED")) return "diverged: no gap";
  if (noted("DID NOT CONVERGE")) return "did not converge: no gap";
  if (!row.gap && !row.gap_percent) return "states no number for the gap";
  return "";
}

// In % where both sides have it, else in nats, else in points.
bool set_values(const MeasuredGap& measured, ComparedGap& out) {
  const auto take = [&](std::string unit, const std::optional<double>& m, const std::optional<GapRange>& p) {
    if (!m || !p) return false;
    out.unit = std::move(unit);
    out.measured = *m;
    out.range = *p;
    return true;
  };
  const auto& p = out.predicted;
  if (take("%", measured.percent, p.percent)) {
    out.measured_nats = measured.nats;
    return true;
  }
  return take("nats", measured.nats, p.nats) || take("points", measured.points, p.points);
}

std::variant<ComparedGap, std::string> compare(const GapRow& row) {
  if (auto why = without_gap(row); !why.empty()) return why;
  auto predicted = predict_gap(row);
  if (const auto* why_not = std::get_if<std::string>(&predicted)) return *why_not;
  ComparedGap out;
  out.row = row;
  out.predicted = std::move(std::get<PredictedGap>(predicted));
  const auto measured = measured_gap(row);
  if (!set_values(measured, out)) {
    return fmt::format("{} is known as a gap of the loss, the row has {}", out.predicted.by, measured.points ? "points of a task" : "no loss to take it of");
  }
  out.bound = row.is_bound();
  const auto& value = out.range.value;
  out.inside = out.bound ? value.value_or(out.range.low) <= out.measured : out.range.low <= out.measured && out.measured <= out.range.high;
  if (value && !out.bound && *value > 0.0 && out.measured > 0.0) out.ratio = *value / out.measured;
  return out;
}

RatioSummary law_summary(const std::vector<ComparedGap>& rows, const std::string& group, std::optional<double> LawsSideBySide::*law) {
  std::vector<double> ratios;
  for (const auto& row : rows) {
    const auto& laws = row.predicted.laws;
    if (row.predicted.group != group || !laws || row.unit != "%" || row.bound || row.measured <= 0.0) continue;
    if (const auto& percent = (*laws).*law) ratios.push_back(*percent / row.measured);
  }
  return summary_of(std::move(ratios));
}

GapGroup group_summary(const std::vector<ComparedGap>& rows, const std::string& name) {
  GapGroup out;
  out.name = name;
  std::vector<double> ratios;
  for (const auto& row : rows) {
    if (row.predicted.group != name) continue;
    ++out.rows;
    (row.bound ? out.bounds : out.values) += 1;
    if (row.inside) (row.bound ? out.bounds_kept : out.inside) += 1;
    if (row.ratio) ratios.push_back(*row.ratio);
  }
  out.ratios = summary_of(std::move(ratios));
  out.kumar = law_summary(rows, name, &LawsSideBySide::kumar);
  out.sun = law_summary(rows, name, &LawsSideBySide::sun);
  out.chen = law_summary(rows, name, &LawsSideBySide::chen);
  out.eff_64 = law_summary(rows, name, &LawsSideBySide::eff_64);
  return out;
}

}  // namespace

RatioSummary summary_of(std::vector<double> ratios) {
  RatioSummary out;
  out.rows = ratios.size();
  if (ratios.empty()) return out;
  double squares = 0.0;
  for (const double ratio : ratios) squares += std::log(ratio) * std::log(ratio);
  out.rms_factor = std::exp(std::sqrt(squares / static_cast<double>(ratios.size())));
  std::sort(ratios.begin(), ratios.end());
  const auto middle = ratios.size() / 2;
  out.median = ratios.size() % 2 == 1 ? ratios[middle] : 0.5 * (ratios[middle - 1] + ratios[middle]);
  return out;
}

GapReport compare_gaps(const std::vector<GapRow>& rows, std::string file) {
  GapReport out;
  out.file = std::move(file);
  std::vector<std::string> names;
  for (const auto& row : rows) {
    auto compared = compare(row);
    if (const auto* why = std::get_if<std::string>(&compared)) {
      out.skipped.push_back({row.id, *why, row.line});
      continue;
    }
    out.compared.push_back(std::move(std::get<ComparedGap>(compared)));
    if (std::find(names.begin(), names.end(), out.compared.back().predicted.group) == names.end()) names.push_back(out.compared.back().predicted.group);
  }
  for (const auto& name : names) out.groups.push_back(group_summary(out.compared, name));
  return out;
}

GapReport compare_gaps(const std::filesystem::path& file) { return compare_gaps(read_gap_rows(file), file.string()); }

}  // namespace fitting

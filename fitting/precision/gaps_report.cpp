#include "fitting/precision/gaps_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/measured/csv.h"
#include "fitting/precision/payoff.h"

namespace fitting {
namespace {

using Line = std::vector<std::string>;

std::string two(double value) { return fmt::format("{:.2g}", value); }
std::string two(const std::optional<double>& value) { return value ? two(*value) : "-"; }
std::optional<double> nats_of(const ComparedGap& c) { return c.unit == "%" && c.predicted.nats ? c.predicted.nats->value : std::nullopt; }
std::string range(const GapRange& gap) { return fmt::format("{} to {}", two(gap.low), two(gap.high)); }

enum class Style : std::uint8_t { table, markdown };

// Columns as wide as their longest cell, the first to the left; or a Markdown table.
std::string written(const std::vector<Line>& lines, Style style) {
  std::string out;
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (std::size_t l = 0; l < lines.size(); ++l) {
    for (std::size_t i = 0; i < lines[l].size(); ++i) {
      if (style == Style::markdown) out += "| " + lines[l][i] + " ";
      else out += i == 0 ? fmt::format("{:<{}}", lines[l][i], widths[i]) : fmt::format("  {:>{}}", lines[l][i], widths[i]);
    }
    out += style == Style::markdown ? "|\n" : "\n";
    if (style != Style::markdown || l > 0) continue;
    for (std::size_t i = 0; i < lines[l].size(); ++i) out += i == 0 ? "|---" : "|---:";
    out += "|\n";
  }
  return out;
}

std::vector<Line> group_lines(const GapReport& report) {
  std::vector<Line> lines{{"group", "rows", "median ratio", "rms factor", "inside range", "bounds kept"}};
  for (const auto& g : report.groups) {
    lines.push_back({g.name, std::to_string(g.rows), g.ratios.rows ? fmt::format("{:.2f}", g.ratios.median) : "-",
                     g.ratios.rows ? fmt::format("{:.2f}", g.ratios.rms_factor) : "-", fmt::format("{} of {}", g.inside, g.values),
                     g.bounds ? fmt::format("{} of {}", g.bounds_kept, g.bounds) : "-"});
  }
  return lines;
}

std::vector<Line> law_lines(const GapReport& report) {
  std::vector<Line> lines{{"median ratio (rms factor) of laws", "rows", "Kumar", "Sun", "Chen W4A4", "eff_N 0.64"}};
  const auto cell = [](const RatioSummary& s) { return s.rows ? fmt::format("{:.2f} ({:.1f}) of {}", s.median, s.rms_factor, s.rows) : std::string("-"); };
  for (const auto& g : report.groups) {
    if (g.kumar.rows + g.sun.rows + g.chen.rows + g.eff_64.rows == 0) continue;
    lines.push_back({g.name, std::to_string(g.values), cell(g.kumar), cell(g.sun), cell(g.chen), cell(g.eff_64)});
  }
  return lines;
}

std::vector<Line> row_lines(const GapReport& report) {
  std::vector<Line> lines{{"row", "by", "unit", "measured", "predicted", "range", "ratio", "inside", "nats", "measured nats",
                           "Kumar %", "Sun %", "Chen %", "eff_N 0.64 %", "floor"}};
  for (const auto& c : report.compared) {
    const auto laws = c.predicted.laws.value_or(LawsSideBySide{});
    lines.push_back({c.row.id, c.predicted.by, c.unit, (c.bound ? "<= " : "") + fmt::format("{:.3g}", c.measured), two(c.range.value), range(c.range),
                     c.ratio ? fmt::format("{:.2f}", *c.ratio) : "-", c.inside ? "yes" : "no", two(nats_of(c)),
                     c.measured_nats ? fmt::format("{:.3g}", *c.measured_nats) : "-", two(laws.kumar), two(laws.sun), two(laws.chen), two(laws.eff_64),
                     c.predicted.floor ? std::string(name_of(c.predicted.floor->grade)) : "-"});
  }
  return lines;
}

std::vector<Line> skipped_lines(const GapReport& report) {
  std::vector<Line> lines{{"not compared", "line", "why"}};
  for (const auto& s : report.skipped) lines.push_back({s.id, std::to_string(s.line), s.why});
  return lines;
}

std::string whole(const GapReport& report, Style style) {
  std::string out = fmt::format("{}: {} rows compared, {} not\n\n", report.file, report.compared.size(), report.skipped.size());
  out += written(group_lines(report), style) + "\n" + written(law_lines(report), style) + "\n" + written(row_lines(report), style);
  if (!report.skipped.empty()) out += "\n" + written(skipped_lines(report), style);
  out += "\nratio: predicted / measured; rms factor: exp of the root mean square of its logarithm. Predictions are against the row's baseline, those of\n"
         "Kumar, Sun, Chen and eff_N 0.64 against 16 bits and in % of each law's own loss. Assumed: active parameters of a mixture of experts count\n"
         "as N, and no schedule, outlier or choice of layers changes a recipe's factors.\n";
  return out;
}

std::string effect_text(const RecipeEffect& e) {
  if (e.gap_percent) return fmt::format("gap {} ({}) %", two(e.gap_percent->value), range(*e.gap_percent));
  const auto factor = [](const char* name, const Ranged& f) { return fmt::format("{} {:.3g} ({:.3g} to {:.3g})", name, f.value, f.low, f.high); };
  return factor("eff_N", e.parameters) + (e.tokens == Ranged{} ? "" : "  " + factor("eff_D", e.tokens));
}

std::string payback_text(const RecipeEffect& e, double N, double D) {
  if (e.gap_percent) return "";
  const auto gap = gap_by_factors(base_law_at(N), N, D, e, RecipeEffect{});
  const auto back = payback(loss_terms(fitted_law("effective-epoch")), N, D, e.parameters.value, e.tokens.value);
  const auto tokens = back.tokens ? fmt::format("{:.2f}", *back.tokens) : fmt::format("more than {:g}", most_tokens);
  return fmt::format("{:<26} gap {} nats, {} ({}) %; compute to bring it back: M_N {:.2f}, M_R {:.2f}, M_D {} (by the measured price of loss {:.2f})\n", "",
                     two(gap.nats.value), two(gap.percent.value), range(gap.percent), back.parameters, back.both, tokens, tokens_at_measured_price(*gap.percent.value));
}

std::string worth_text(const RecipeEffect& e, double speed) {
  if (e.gap_percent) return "";
  const auto worth = worth_of_speed(speed, e);
  return fmt::format("{:<26} at {:g} times the speed: {}, gain {:.2f} (M {:.2f}, {:.2f} to {:.2f})\n", "", speed, name_of(worth.worth), worth.gain,
                     worth.factor.value, worth.factor.low, worth.factor.high);
}

}  // namespace

std::string gaps_table(const GapReport& report) { return whole(report, Style::table); }
std::string gaps_markdown(const GapReport& report) { return whole(report, Style::markdown); }

std::string gaps_csv(const GapReport& report) {
  std::string out =
      "id,line,group,by,base,unit,measured,bound,predicted,low,high,ratio,inside,predicted_nats,measured_nats,"
      "kumar_percent,sun_percent,chen_percent,eff64_percent,floor,why_not\n";
  const auto number = [](const std::optional<double>& v) { return v ? fmt::format("{:.6g}", *v) : std::string(); };
  for (const auto& c : report.compared) {
    const auto laws = c.predicted.laws.value_or(LawsSideBySide{});
    out += fmt::format("{},{},{},{},{},{},{:.6g},{},{},{:.6g},{:.6g},{},{},{},{},{},{},{},{},{},\n", core::csv_quoted(c.row.id), c.row.line, core::csv_quoted(c.predicted.group),
                       core::csv_quoted(c.predicted.by), c.predicted.base, c.unit, c.measured, c.bound ? "yes" : "no", number(c.range.value), c.range.low, c.range.high,
                       number(c.ratio), c.inside ? "yes" : "no", number(nats_of(c)), number(c.measured_nats), number(laws.kumar), number(laws.sun),
                       number(laws.chen), number(laws.eff_64), c.predicted.floor ? name_of(c.predicted.floor->grade) : "");
  }
  for (const auto& s : report.skipped) out += fmt::format("{},{},,,,,,,,,,,,,,,,,,,{}\n", core::csv_quoted(s.id), s.line, core::csv_quoted(s.why));
  return out;
}

std::string prediction_text(const PredictedGap& gap) {
  std::string out = fmt::format("by {}{}\n", gap.by, gap.base.empty() ? "" : " on " + gap.base);
  const auto line = [&](const char* unit, const std::optional<GapRange>& g) {
    if (g) out += fmt::format("  gap {} ({}) {}\n", two(g->value), range(*g), unit);
  };
  line("nats a token", gap.nats);
  line("% of the loss", gap.percent);
  line("points of a task", gap.points);
  if (gap.laws) {
    out += fmt::format("  laws, in %: Kumar {}, Sun {}, Chen W4A4 {}, eff_N 0.64 {}\n", two(gap.laws->kumar), two(gap.laws->sun), two(gap.laws->chen), two(gap.laws->eff_64));
  }
  if (gap.floor) out += fmt::format("  floor: {}{}\n", name_of(gap.floor->grade), gap.floor->why.empty() ? "" : ", " + gap.floor->why);
  if (!gap.flag.empty()) out += fmt::format("  flag: {}\n", gap.flag);
  if (!gap.note.empty()) out += fmt::format("  assumed: {}\n", gap.note);
  return out;
}

std::string recipes_text(std::optional<double> N, std::optional<double> D, std::optional<double> speed) {
  std::string out;
  for (const auto& e : recipe_effects()) {
    out += fmt::format("{:<26} {:<40} {}{}\n", e.name, effect_text(e), e.source, e.flag.empty() ? "" : "; " + e.flag);
    if (N && D) out += payback_text(e, *N, *D);
    if (speed) out += worth_text(e, *speed);
  }
  return out;
}

}  // namespace fitting

#include "fitting/best_sizes/best_sizes_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/io/json_writer.h"

namespace fitting {
namespace {

constexpr const char* formula = "N = N_coefficient * C^a; D = D_coefficient * C^b";

void estimates_json(core::JsonWriter& json, const std::vector<Estimate>& estimates) {
  json.begin_object();
  for (const auto& e : estimates) {
    json.key(e.name).begin_object().member("value", e.value);
    if (e.interval) json.member("low", e.interval->low).member("high", e.interval->high);
    json.end_object();
  }
  json.end_object();
}

void texts_json(core::JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_list();
  for (const auto& text : texts) json.value(text);
  json.end_list();
}

void dropped_json(core::JsonWriter& json, const char* name, const std::vector<core::DroppedRow>& rows) {
  json.begin_list();
  for (const auto& dropped : rows) json.begin_object().member(name, dropped.row).member("why", dropped.why).end_object();
  json.end_list();
}

void points_json(core::JsonWriter& json, const std::vector<BestAt>& points) {
  json.begin_list();
  for (const auto& point : points) {
    json.begin_object().member("C", point.C).member("N", point.N).member("D", point.D).member("L", point.L).member("from", point.runs);
    if (point.ln_N_sd) json.member("ln_N_sd", *point.ln_N_sd);
    json.end_object();
  }
  json.end_list();
}

std::string interval_text(const Estimate& e, double confidence) {
  if (!e.interval) return "";
  return fmt::format("{:.6g} to {:.6g} ({:.0f} %)", e.interval->low, e.interval->high, 100.0 * confidence);
}

std::string dropped_text(const std::vector<core::DroppedRow>& rows, const std::string& what) {
  if (rows.empty()) return {};
  constexpr std::size_t shown = 12;
  auto out = fmt::format("  {} {}:\n", rows.size(), what);
  for (std::size_t i = 0; i < std::min(rows.size(), shown); ++i) out += fmt::format("    {}: {}\n", rows[i].row, rows[i].why);
  if (rows.size() > shown) out += fmt::format("    and {} more (--format json lists them)\n", rows.size() - shown);
  return out;
}

}  // namespace

std::string best_sizes_json(const BestSizesAnswer& answer) {
  const auto& fit = answer.sizes;
  core::JsonWriter json;
  json.begin_object().member("version", answer.version).member("law", fit.law).member("formula", formula).member("source", fit.source);
  estimates_json(json.key("parameters"), fit.parameters);
  estimates_json(json.key("derived"), fit.derived);
  json.member("objective", fit.objective).member("objective_kind", fit.objective_kind).member("rows_used", fit.rows);
  dropped_json(json.key("rows_dropped"), "row", answer.observations.dropped);
  texts_json(json.key("mapping"), answer.observations.notes);
  json.member("r2_log", fit.r2_log).key("held_out_error");
  if (fit.held_out) {
    json.value(fit.held_out->median_abs_error).key("held_out").begin_object().member("rows", fit.held_out->rows);
    json.member("which", fit.held_out->which).member("bias", fit.held_out->bias).end_object();
  } else {
    json.null();
  }
  json.member("converged", true).member("starts", 0);  // solved, not searched for
  if (fit.draws > 0) {
    json.member("seed", answer.seed).key("bootstrap").begin_object().member("draws", fit.draws);
    json.member("confidence", answer.confidence).member("failed", fit.draws_failed).end_object();
  }
  points_json(json.key("points"), fit.points);
  dropped_json(json.key("refused"), "what", fit.refused);
  if (answer.elapsed_s) json.member("elapsed_s", *answer.elapsed_s);
  texts_json(json.key("warnings"), fit.warnings);
  return json.end_object().text();
}

std::string best_sizes_table(const BestSizesAnswer& answer) {
  const auto& fit = answer.sizes;
  auto out = fmt::format("{}   {}\n  {}\n\n", fit.law, formula, fit.source);
  for (const auto* list : {&fit.parameters, &fit.derived}) {
    for (const auto& e : *list) {
      const auto name = e.name == "tokens_per_parameter" ? std::string("tokens a parameter at the largest C") : e.name;
      out += fmt::format("  {:<14} {:>12.6g}   {}\n", name, e.value, interval_text(e, answer.confidence));
    }
  }
  out += fmt::format("\n  {:>10} {:>10} {:>10} {:>8} {:>6} {:>9}\n", "C", "N*", "D*", "loss", "from", "SD(ln N*)");
  for (const auto& point : fit.points) {
    out += fmt::format("  {:>10.4g} {:>10.4g} {:>10.4g} {:>8.4f} {:>6} {:>9}\n", point.C, point.N, point.D, point.L, point.runs,
                       point.ln_N_sd ? fmt::format("{:.3f}", *point.ln_N_sd) : "");
  }
  out += dropped_text(fit.refused, "not used");
  out += fmt::format("\n  {} rows, R2 {:.4f} (of ln N*)\n", fit.rows, fit.r2_log);
  if (fit.held_out) out += fmt::format("  held out: {}: error {:+.2f} %\n", fit.held_out->which, 100.0 * fit.held_out->bias);
  out += "\n  columns:\n";
  for (const auto& note : answer.observations.notes) out += fmt::format("    {}\n", note);
  out += dropped_text(answer.observations.dropped, "rows left out");
  for (const auto& warning : fit.warnings) out += fmt::format("  warning: {}\n", warning);
  if (answer.elapsed_s) out += fmt::format("  {:.2f} s\n", *answer.elapsed_s);
  return out;
}

std::string best_sizes_markdown(const BestSizesAnswer& answer) {
  const auto& fit = answer.sizes;
  auto out = fmt::format("**{}**: `{}`\n\n| parameter | value | interval |\n|---|---|---|\n", fit.law, formula);
  for (const auto* list : {&fit.parameters, &fit.derived}) {
    for (const auto& e : *list) out += fmt::format("| {} | {:.6g} | {} |\n", e.name, e.value, interval_text(e, answer.confidence));
  }
  out += "\n| C | N* | D* | loss |\n|---|---|---|---|\n";
  for (const auto& point : fit.points) out += fmt::format("| {:.4g} | {:.4g} | {:.4g} | {:.4f} |\n", point.C, point.N, point.D, point.L);
  for (const auto& refused : fit.refused) out += fmt::format("| {} | {} | | |\n", refused.row, refused.why);
  out += fmt::format("\n{} rows, {} left out; R2 {:.4f}.\n", fit.rows, answer.observations.dropped.size(), fit.r2_log);
  for (const auto& warning : fit.warnings) out += fmt::format("\n- {}", warning);
  return out + (fit.warnings.empty() ? "" : "\n");
}

std::string best_sizes_csv(const BestSizesAnswer& answer) {
  std::string out = "parameter,value,low,high,fixed\n";
  for (const auto* list : {&answer.sizes.parameters, &answer.sizes.derived}) {
    for (const auto& e : *list) {
      out += fmt::format("{},{:.17g},{},{},no\n", e.name, e.value, e.interval ? fmt::format("{:.17g}", e.interval->low) : "",
                         e.interval ? fmt::format("{:.17g}", e.interval->high) : "");
    }
  }
  return out;
}

}  // namespace fitting

#include "fitting/fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/io/json_writer.h"

namespace fitting {
namespace {

void estimates_json(core::JsonWriter& json, const std::vector<Estimate>& estimates) {
  json.begin_object();
  for (const auto& e : estimates) {
    json.key(e.name).begin_object().member("value", e.value);
    if (e.interval) json.member("low", e.interval->low).member("high", e.interval->high);
    if (e.fixed) json.member("fixed", true);
    json.end_object();
  }
  json.end_object();
}

void minima_json(core::JsonWriter& json, const FitReport& fit) {
  json.begin_list();
  for (const auto& basin : fit.minima) {
    json.begin_object().member("objective", basin.minimum.objective).member("starts", basin.starts);
    json.member("converged", basin.minimum.converged).key("parameters").begin_object();
    for (std::size_t j = 0; j < basin.minimum.parameters.size(); ++j) {
      json.member(fit.law.law.parameters[j].name, basin.minimum.parameters[j]);
    }
    json.end_object().end_object();
  }
  json.end_list();
}

void texts_json(core::JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_list();
  for (const auto& text : texts) json.value(text);
  json.end_list();
}

// Rows far off, and the fit without them.
void outliers_json(core::JsonWriter& json, const FitAnswer& answer) {
  const auto& outliers = *answer.fit.outliers;
  json.begin_object().key("rows").begin_list();
  for (std::size_t i = 0; i < outliers.rows.size(); ++i) {
    json.begin_object().member("row", answer.observations.rows[outliers.rows[i]]);
    json.member("measured_over_law", std::exp(outliers.residuals[i])).end_object();
  }
  json.end_list().key("parameters_without").begin_object();
  for (std::size_t j = 0; j < outliers.parameters.size(); ++j) json.member(answer.fit.parameters[j].name, outliers.parameters[j]);
  json.end_object().end_object();
}

// Draws, seed and kind of the intervals.
void bootstrap_json(core::JsonWriter& json, const FitAnswer& answer) {
  json.begin_object().member("draws", answer.fit.draws).member("seed", static_cast<std::int64_t>(answer.options.seed));
  json.member("resample", answer.options.resample == Resample::cases ? "cases" : "residuals");
  json.member("starts_of_each", answer.options.bootstrap_starts + 1).member("confidence", answer.options.confidence);
  json.member("failed", answer.fit.draws_failed).member("at_bound", answer.fit.draws_at_bound).end_object();
}

std::string number(double value) { return fmt::format("{:.6g}", value); }

std::string interval_text(const Estimate& e, double confidence) {
  if (e.fixed) return "fixed";
  if (!e.interval) return "";
  return fmt::format("{} to {} ({:.0f} %)", number(e.interval->low), number(e.interval->high), 100.0 * confidence);
}

std::string meaning(const std::string& name) {
  if (name == "a") return "a: best size grows as C^a";
  return "tokens a parameter at the largest C";
}

}  // namespace

std::string objective_kind(const FitReport& fit) {
  if (fit.projected) return "sum of squares of measured - law";
  return fmt::format("sum of Huber losses (threshold {:g}) of ln(measured / law)", fit.huber);
}

std::string fit_json(const FitAnswer& answer) {
  const auto& fit = answer.fit;
  core::JsonWriter json;
  json.begin_object().member("version", answer.version).member("law", fit.law.law.name).member("formula", fit.law.law.formula);
  json.member("source", fit.law.law.source);
  estimates_json(json.key("parameters"), fit.parameters);
  if (!fit.derived.empty()) estimates_json(json.key("derived"), fit.derived);
  json.member("objective", fit.objective).member("objective_kind", objective_kind(fit));
  if (!fit.compared.empty()) {
    json.key("objective_of").begin_object();
    for (const auto& [name, objective] : fit.compared) json.member(name, objective);
    json.end_object();
  }
  json.member("rows_used", fit.rows);
  json.key("rows_dropped").begin_list();
  for (const auto& dropped : answer.observations.dropped) {
    json.begin_object().member("row", dropped.row).member("why", dropped.why).end_object();
  }
  json.end_list();
  texts_json(json.key("mapping"), answer.observations.notes);
  json.member("r2_log", fit.r2_log);
  json.key("held_out_error");
  if (fit.held_out) {
    json.value(fit.held_out->median_abs_error).key("held_out").begin_object().member("rows", fit.held_out->rows);
    json.member("which", fit.held_out->which).member("bias", fit.held_out->bias).end_object();
  } else {
    json.null();
  }
  json.member("converged", fit.converged).member("starts", fit.starts).member("starts_at_best", fit.starts_at_best);
  json.member("solver", fit.projected ? "variable projection" : fit.batched ? "batched Newton" : "Ceres, then Newton");
  minima_json(json.key("minima"), fit);
  if (fit.outliers) outliers_json(json.key("outliers"), answer);
  if (fit.draws > 0) {
    json.member("seed", static_cast<std::int64_t>(answer.options.seed));
    bootstrap_json(json.key("bootstrap"), answer);
  }
  if (!fit.profiles.empty()) {
    json.key("profiles").begin_list();
    for (const auto& profile : fit.profiles) {
      json.begin_object().member("parameter", profile.parameter).key("points").begin_list();
      for (std::size_t i = 0; i < profile.values.size(); ++i) {
        json.begin_object().member("value", profile.values[i]).member("objective", profile.objectives[i]).end_object();
      }
      json.end_list().end_object();
    }
    json.end_list();
  }
  if (!answer.compared.empty()) texts_json(json.key("compared"), answer.compared);
  if (answer.elapsed_s) json.member("elapsed_s", *answer.elapsed_s);
  texts_json(json.key("warnings"), fit.warnings);
  return json.end_object().text();
}

std::string fit_table(const FitAnswer& answer) {
  const auto& fit = answer.fit;
  std::string out = fmt::format("{}   {} = {}\n", fit.law.law.name, fit.law.law.output, fit.law.law.formula);
  out += fmt::format("  {}\n\n", fit.law.law.source);
  for (const auto& line : answer.compared) out += fmt::format("  {}\n", line);
  if (!answer.compared.empty()) out += "\n";
  for (const auto& e : fit.parameters) out += fmt::format("  {:<10} {:>12}   {}\n", e.name, number(e.value), interval_text(e, answer.options.confidence));
  for (const auto& e : fit.derived) {
    out += fmt::format("  {} = {}   {}\n", meaning(e.name), number(e.value), interval_text(e, answer.options.confidence));
  }
  out += fmt::format("\n  objective {:.10g}, {}\n", fit.objective, objective_kind(fit));
  for (const auto& [name, objective] : fit.compared) out += fmt::format("  {:.10g} at the constants {}\n", objective, name);
  out += fmt::format("  {} rows, R2 {:.4f} (of logarithms), {} of {} starts reached the minimum{}\n", fit.rows, fit.r2_log, fit.starts_at_best,
                     fit.starts, fit.converged ? "" : ", not converged");
  if (fit.held_out) {
    out += fmt::format("  held out: {} rows ({}): median error {:.2f} %, bias {:+.2f} %\n", fit.held_out->rows, fit.held_out->which,
                       100.0 * fit.held_out->median_abs_error, 100.0 * fit.held_out->bias);
  }
  if (fit.minima.size() > 1) {
    constexpr std::size_t listed = 6;
    out += "  minima:\n";
    for (std::size_t b = 0; b < std::min(fit.minima.size(), listed); ++b) {
      const auto& basin = fit.minima[b];
      out += fmt::format("    {:.10g} from {} starts:", basin.minimum.objective, basin.starts);
      for (std::size_t j = 0; j < basin.minimum.parameters.size(); ++j) {
        if (!fit.parameters[j].fixed) out += fmt::format(" {} {}", fit.law.law.parameters[j].name, number(basin.minimum.parameters[j]));
      }
      out += "\n";
    }
    if (fit.minima.size() > listed) out += fmt::format("    and {} more (--format json lists them)\n", fit.minima.size() - listed);
  }
  for (const auto& profile : fit.profiles) {
    out += fmt::format("  profile of {}:\n", profile.parameter);
    for (std::size_t i = 0; i < profile.values.size(); i += 4) {
      out += fmt::format("    {:>12} {:.8g} ({:+.3f} %)\n", number(profile.values[i]), profile.objectives[i],
                         100.0 * (profile.objectives[i] / fit.objective - 1.0));
    }
  }
  out += "\n  columns:\n";
  for (const auto& note : answer.observations.notes) out += fmt::format("    {}\n", note);
  const auto& dropped = answer.observations.dropped;
  if (!dropped.empty()) out += fmt::format("  {} runs left out:\n", dropped.size());
  constexpr std::size_t shown = 12;
  for (std::size_t i = 0; i < std::min(dropped.size(), shown); ++i) out += fmt::format("    {}: {}\n", dropped[i].row, dropped[i].why);
  if (dropped.size() > shown) out += fmt::format("    and {} more (--format json lists them)\n", dropped.size() - shown);
  for (const auto& warning : fit.warnings) out += fmt::format("  warning: {}\n", warning);
  if (answer.elapsed_s) out += fmt::format("  {:.2f} s\n", *answer.elapsed_s);
  return out;
}

std::string fit_markdown(const FitAnswer& answer) {
  const auto& fit = answer.fit;
  std::string out = fmt::format("**{}**: `{} = {}`\n\n| parameter | value | interval |\n|---|---|---|\n", fit.law.law.name, fit.law.law.output,
                                fit.law.law.formula);
  for (const auto* list : {&fit.parameters, &fit.derived}) {
    for (const auto& e : *list) out += fmt::format("| {} | {} | {} |\n", e.name, number(e.value), interval_text(e, answer.options.confidence));
  }
  out += fmt::format("\n{} rows, {} left out; objective {:.10g} ({}); R2 {:.4f}", fit.rows, answer.observations.dropped.size(), fit.objective,
                     objective_kind(fit), fit.r2_log);
  if (fit.held_out) out += fmt::format("; held out ({}): median error {:.2f} %", fit.held_out->which, 100.0 * fit.held_out->median_abs_error);
  out += ".\n";
  for (const auto& warning : fit.warnings) out += fmt::format("\n- {}", warning);
  return out + (fit.warnings.empty() ? "" : "\n");
}

std::string fit_csv(const FitAnswer& answer) {
  std::string out = "parameter,value,low,high,fixed\n";
  for (const auto* list : {&answer.fit.parameters, &answer.fit.derived}) {
    for (const auto& e : *list) {
      out += fmt::format("{},{:.17g},{},{},{}\n", e.name, e.value, e.interval ? fmt::format("{:.17g}", e.interval->low) : "",
                         e.interval ? fmt::format("{:.17g}", e.interval->high) : "", e.fixed ? "yes" : "no");
    }
  }
  return out;
}

}  // namespace fitting

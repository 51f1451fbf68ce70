#include "planner/calibrate/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/io/json_writer.h"

namespace planner {

namespace {

std::string percent(double share) { return fmt::format("{:.1f}", 100.0 * share); }

std::string errors_text(const simulator::ErrorSummary& e) {
  if (e.n == 0) return fmt::format("{:>6} {:>6} {:>6} {:>7}", "-", "-", "-", "-");
  return fmt::format("{:>6} {:>6} {:>6} {:>+7.1f}",
                     percent(e.median_abs),
                     percent(e.mean_abs),
                     percent(e.p90_abs),
                     100.0 * e.bias);
}

std::size_t touched(const Calibration& c) {
  return static_cast<std::size_t>(std::ranges::count_if(
      c.fitted, [](const FittedParameter& f) { return f.rows_touched > 0; }));
}

std::string parameters_table(const Calibration& c) {
  std::string text =
      fmt::format("{:<34} {:>9} {:>9} {:>7} {:>17} {:>5}  {}\n",
                  "parameter",
                  "start",
                  "fitted",
                  "+- %",
                  "bounds",
                  "rows",
                  c.all().left_out ? "helps by (points of the left-out median)" : "");
  for (std::size_t j = 0; j < c.fitted.size(); ++j) {
    const auto& p = c.spec.parameters[j];
    const auto& f = c.fitted[j];
    std::string remark = f.helps_by ? fmt::format("{:+.2f}", 100.0 * *f.helps_by) : "";
    if (const auto what = remark_on(f); !what.empty())
      remark += (remark.empty() ? "" : "; ") + what;
    text += fmt::format("{:<34} {:>9} {:>9} {:>7} {:>17} {:>5}  {}\n",
                        p.name,
                        fmt::format("{:.4g}", p.start()),
                        fmt::format("{:.4g}", f.value),
                        percent(f.standard_error),
                        fmt::format("{:.4g} to {:.4g}", p.low, p.high),
                        f.rows_touched,
                        remark);
  }
  return text;
}

std::string sizes_text(const simulator::ErrorSummary& e) {
  if (e.n == 0) return fmt::format("{:>6} {:>6} {:>6}", "-", "-", "-");
  return fmt::format("{:>6} {:>6} {:>6}", percent(e.median_abs), percent(e.mean_abs), percent(e.p90_abs));
}

// Kernels are not calibrated by one of them.
bool has_factors(const Calibration& c) { return c.all().one_factor && c.all().one_factor->n > 0; }

std::string heading_of_left_out(const Calibration& c) {
  if (!c.all().left_out) return "";
  return has_factors(c) ? "   source left out                then one factor" : "   source left out";
}

std::string source_line(const SourceErrors& s, std::size_t width, bool factors) {
  auto text = fmt::format(
      "{:<{}} {:>5}   {}  {}", s.source, width, s.before.n, errors_text(s.before), errors_text(s.after));
  if (s.left_out) text += "  " + errors_text(*s.left_out);
  if (factors) text += "   " + sizes_text(*s.one_factor);
  return text + "\n";
}

std::string sources_table(const Calibration& c) {
  std::size_t width = 16;
  for (const auto& s : c.sources) width = std::max(width, s.source.size());
  std::string text = fmt::format("{:<{}} {:>5}   {:<28}   {:<28}{}\n{:<{}} {:>5} ",
                                 c.spec.measures + ", %",
                                 width,
                                 "",
                                 "at the starts",
                                 "fitted",
                                 heading_of_left_out(c),
                                 "source",
                                 width,
                                 "rows");
  const int parts = c.all().left_out ? 3 : 2;
  for (int i = 0; i < parts; ++i)
    text += fmt::format("  {:>6} {:>6} {:>6} {:>7}", "median", "mean", "p90", "bias");
  if (has_factors(c)) text += fmt::format("   {:>6} {:>6} {:>6}", "median", "mean", "p90");
  text += "\n";
  const auto lines = [&](const std::vector<SourceErrors>& of) {
    for (const auto& s : of) text += source_line(s, width, has_factors(c));
  };
  lines(c.sources);
  if (!c.groups.empty()) text += "\n";
  lines(c.groups);
  return text;
}

core::JsonWriter& write_sizes(core::JsonWriter& json, const simulator::ErrorSummary& e) {
  return json.member("median_abs", e.median_abs).member("mean_abs", e.mean_abs).member("p90_abs", e.p90_abs);
}

void write_errors(core::JsonWriter& json, const char* name, const simulator::ErrorSummary& e) {
  write_sizes(json.key(name).begin_object(), e).member("bias", e.bias).end_object();
}

void write_parameter(core::JsonWriter& json, const Calibration& c, std::size_t j) {
  const auto& p = c.spec.parameters[j];
  const auto& f = c.fitted[j];
  json.begin_object();
  json.member("name", p.name);
  json.member("meaning", p.meaning);
  json.key("targets").begin_list();
  for (std::size_t t = 0; t < p.targets.size(); ++t) {
    json.begin_object();
    json.member("file", p.targets[t].file());
    json.member("key", p.targets[t].key);
    if (const auto element = p.targets[t].element)
      json.member("element", static_cast<std::int64_t>(*element));
    json.key("numbers").begin_list();
    for (const double number : c.numbers(j, t)) json.value(number);
    json.end_list();
    json.end_object();
  }
  json.end_list();
  json.member("start", p.start());
  json.member("low", p.low);
  json.member("high", p.high);
  json.member("fitted", f.value);
  json.member("standard_error_relative", f.standard_error);
  json.member("rows_touched", static_cast<std::int64_t>(f.rows_touched));
  json.member("at_bound", f.at_bound);
  json.key("helps_left_out_median_by");
  if (f.helps_by)
    json.value(*f.helps_by);
  else
    json.null();
  json.member("remark", remark_on(f));
  json.end_object();
}

void write_source(core::JsonWriter& json, const char* name, const SourceErrors& s) {
  json.begin_object();
  json.member(name, s.source);
  json.member("rows", static_cast<std::int64_t>(s.before.n));
  write_errors(json, "before", s.before);
  write_errors(json, "after", s.after);
  if (s.left_out) write_errors(json, "left_out", *s.left_out);
  if (s.one_factor && s.one_factor->n > 0)
    write_sizes(json.key("left_out_then_one_factor").begin_object(), *s.one_factor).end_object();
  json.end_object();
}

// The members of an object.
void write_calibration(core::JsonWriter& json, const Calibration& c) {
  json.member("rows", static_cast<std::int64_t>(c.rows));
  json.member("held_back", static_cast<std::int64_t>(c.held_back));
  json.member("skipped", static_cast<std::int64_t>(c.skipped));
  json.member("converged", c.converged);
  json.member("message", c.message);
  json.member("iterations", c.iterations);
  json.key("parameters").begin_list();
  for (std::size_t j = 0; j < c.fitted.size(); ++j) write_parameter(json, c, j);
  json.end_list();
  json.key("sources").begin_list();
  for (const auto& s : c.sources) write_source(json, "source", s);
  json.end_list();
  json.key("groups").begin_list();
  for (const auto& s : c.groups) write_source(json, "group", s);
  json.end_list();
}

}  // namespace

std::string remark_on(const FittedParameter& fitted) {
  if (fitted.rows_touched == 0) return "no row touches it: stays at its start";
  std::string remark;
  if (fitted.at_bound) remark = "at a bound";
  if (fitted.helps_by && *fitted.helps_by <= 0.0)
    remark += std::string(remark.empty() ? "" : "; ") + "does not help the left-out median";
  return remark;
}

std::string calibration_table(const Calibration& c) {
  return fmt::format(
      "{} parameters ({} that rows touch) on {} rows of {} sources; {}{} rows skipped; "
      "{} after {} iterations\n\n{}\n{}",
      c.fitted.size(),
      touched(c),
      c.rows,
      c.sources.size() - 1,
      c.held_back > 0 ? fmt::format("{} held back, ", c.held_back) : "",
      c.skipped,
      c.converged ? "converged" : "NOT CONVERGED",
      c.iterations,
      parameters_table(c),
      sources_table(c));
}

std::string calibration_json(const Calibration& c) {
  core::JsonWriter json;
  json.begin_object();
  write_calibration(json, c);
  json.end_object();
  return json.text();
}

std::string kernels_table(const std::vector<KernelCalibration>& fits) {
  std::string text = fmt::format(
      "{:<32} {:>10} {:>6} {:>5}   {:<28}   {:<28}   source left out\n{:<32} {:>10} {:>6} {:>5} ",
      "time, %",
      "",
      "",
      "",
      "at the starts",
      "fitted",
      "fit",
      "parameters",
      "moved",
      "rows");
  for (int i = 0; i < 3; ++i)
    text += fmt::format("  {:>6} {:>6} {:>6} {:>7}", "median", "mean", "p90", "bias");
  text += "\n";
  std::string parts;
  for (const auto& [name, tables, c] : fits) {
    text += fmt::format("{:<32} {:>10} {:>6} {:>5}   {}  {}",
                        name,
                        c.fitted.size(),
                        touched(c),
                        c.rows,
                        errors_text(c.all().before),
                        errors_text(c.all().after));
    if (c.all().left_out) text += "  " + errors_text(*c.all().left_out);
    text += "\n";
    parts += fmt::format("\n{} ({})\n{}", name, fmt::join(tables, ", "), calibration_table(c));
  }
  return text + parts;
}

std::string kernels_json(const std::vector<KernelCalibration>& fits) {
  core::JsonWriter json;
  json.begin_object();
  json.key("fits").begin_list();
  for (const auto& [name, tables, calibration] : fits) {
    json.begin_object();
    json.member("name", name);
    json.key("tables").begin_list();
    for (const auto& table : tables) json.value(table);
    json.end_list();
    write_calibration(json, calibration);
    json.end_object();
  }
  json.end_list();
  json.end_object();
  return json.text();
}

}  // namespace planner

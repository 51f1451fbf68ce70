#include <fmt/format.h>

#include <cmath>

#include "core/io/json_writer.h"
#include "planner/calibrate/intervals.h"
#include "simulator/check/summary.h"

namespace planner {

namespace {

double median_of(const std::vector<double>& errors) { return simulator::quantile(errors, 0.5); }

std::string coverage_text(const Coverage& c) {
  std::string text = fmt::format("{:<16} {:>6} {:>8.1f} {:>10.1f} {:>9.1f}", c.left_out, c.rows, 100.0 * c.share(),
                                 100.0 * c.weighted_share(), 100.0 * median_of(c.errors));
  text += c.pairs > 0
              ? fmt::format(" {:>8} {:>8.1f} {:>9.1f}", c.pairs, 100.0 * c.pair_share(), 100.0 * median_of(c.errors_after))
              : fmt::format(" {:>8} {:>8} {:>9}", "-", "-", "-");
  return text + "\n";
}

std::string coverage_table(const char* what, const std::vector<Coverage>& coverage) {
  std::string text = fmt::format("{:<16} {:>6} {:>8} {:>10} {:>9} {:>8} {:>8} {:>9}\n", what, "rows", "inside %", "weighted %",
                                 "median %", "pairs", "inside %", "median %");
  for (const auto& c : coverage) text += coverage_text(c);
  return text;
}

void write_coverage(core::JsonWriter& json, const char* key, const std::vector<Coverage>& coverage) {
  json.key(key).begin_list();
  for (const auto& c : coverage) {
    json.begin_object().member("left_out", c.left_out).member("rows", static_cast<std::int64_t>(c.rows));
    json.member("inside", c.share())
        .member("inside_weighted", c.weighted_share())
        .member("median_abs_error", median_of(c.errors));
    json.member("pairs", static_cast<std::int64_t>(c.pairs)).member("pairs_inside", c.pair_share());
    json.key("median_abs_error_after_one_run");
    c.pairs > 0 ? json.value(median_of(c.errors_after)) : json.null();
    json.end_object();
  }
  json.end_list();
}

}  // namespace

std::string intervals_table(const IntervalReport& report) {
  const auto& u = report.intervals;
  std::string text = fmt::format(
      "{:.0f} % of step times over their predictions, of a source not seen; after one run of the same source.\nMedians are of "
      "|predicted / measured - 1|: of rows, and of pairs of a source after the factor of one of them.\n\n",
      100.0 * u.share);
  text += fmt::format("{:>5} {:>7} {:>6} {:>6} {:>9}  {}\n", "rows", "sources", "low", "high", "after one", "class");
  for (const auto& c : u.classes)
    text += fmt::format("{:>5} {:>7} {:>6.2f} {:>6.2f} {:>9} {}\n", c.rows, c.sources, c.low, c.high,
                        fmt::format("+-{:.0f} %", 100.0 * std::expm1(c.after_one_run)), " " + c.runs.text());
  for (const auto& [what, half] : u.after_other_run)
    text += fmt::format("after a run that differs in {}: +-{:.0f} %\n", what, 100.0 * std::expm1(half));
  text += "\n" + coverage_table("source left out", report.by_source) + "\n" +
          coverage_table("architecture", report.by_architecture);
  return text;
}

std::string intervals_json(const IntervalReport& report) {
  core::JsonWriter json;
  json.begin_object();
  json.key("classes").begin_list();
  for (const auto& c : report.intervals.classes) {
    json.begin_object().member("class", c.runs.text()).member("rows", c.rows).member("sources", c.sources);
    json.member("low", c.low).member("high", c.high).member("after_one_run", c.after_one_run).end_object();
  }
  json.end_list();
  write_coverage(json, "sources_left_out", report.by_source);
  write_coverage(json, "architectures_left_out", report.by_architecture);
  return json.end_object().text();
}

}  // namespace planner

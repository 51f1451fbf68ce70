#include "simulator/check/baseline.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/io/document.h"
#include "core/io/json_writer.h"
#include "simulator/check/summary.h"

namespace simulator {

namespace {

constexpr std::string_view all_sources = "all";

// Six digits after the point, as they are written: what is read back equals what was made.
double rounded(double value) { return std::round(value * 1e6) / 1e6; }
std::optional<double> rounded(const std::optional<double>& value) {
  return value ? std::optional(rounded(*value)) : std::nullopt;
}

std::optional<Baseline::Errors> errors_of(const ErrorSummary& s) {
  if (s.n == 0) return std::nullopt;
  return Baseline::Errors{rounded(s.median_abs), rounded(s.mean_abs)};
}

std::map<std::string, Baseline::Source> sources_of(const std::vector<CheckedRow>& rows) {
  std::map<std::string, Baseline::Source> out;
  const auto add = [&](const std::string& name, const Summary& s) {
    out[name] = {errors_of(s.step_time), errors_of(s.memory)};
  };
  for (const auto& [name, summary] : summarise_by(rows, GroupBy::source)) add(name, summary);
  add(std::string(all_sources), summarise_all(rows));
  return out;
}

Baseline::Row row_of(const CheckedRow& row) {
  if (!row.skipped_because.empty()) return {};
  return {rounded(row.step_time_error),
          rounded(row.memory_error),
          std::string(name_of(row.predicted->fits))};
}

void write_optional(core::JsonWriter& json,
                    std::string_view key,
                    const std::optional<double>& value) {
  json.key(key);
  value ? json.value(*value) : json.null();
}

void write_errors(core::JsonWriter& json,
                  std::string_view key,
                  const std::optional<Baseline::Errors>& errors) {
  json.key(key);
  if (!errors) {
    json.null();
    return;
  }
  json.begin_object()
      .member("median_abs_error", errors->median)
      .member("mean_abs_error", errors->mean)
      .end_object();
}

std::optional<double> read_optional(const core::Document& object, std::string_view key) {
  const auto& value = object.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.as_real());
}

std::optional<Baseline::Errors> read_errors(const core::Document& object, std::string_view key) {
  const auto& value = object.at(key);
  if (value.is_null()) return std::nullopt;
  Baseline::Errors errors{value.at("median_abs_error").as_real(),
                          value.at("mean_abs_error").as_real()};
  value.reject_unknown({"median_abs_error", "mean_abs_error"});
  return errors;
}

Baseline::Row read_row(const core::Document& value) {
  Baseline::Row row{read_optional(value, "step_time_error"),
                    read_optional(value, "memory_error"),
                    value.at("predicted_fits").as_text()};
  value.reject_unknown({"step_time_error", "memory_error", "predicted_fits"});
  return row;
}

// Holds one figure to its earlier one.
void hold(const std::string& what,
          std::string_view figure,
          const std::optional<double>& now,
          const std::optional<double>& before,
          double tolerance,
          std::vector<std::string>& failures) {
  if (!before) return;
  if (!now) {
    failures.push_back(
        fmt::format("{}: no {} now, {:+.2f} % in the baseline", what, figure, 100.0 * *before));
  } else if (std::abs(*now) > std::abs(*before) + tolerance) {
    failures.push_back(
        fmt::format("{}: {} {:+.2f} %, {:+.2f} % in the baseline, {:.2f} points allowed",
                    what,
                    figure,
                    100.0 * *now,
                    100.0 * *before,
                    100.0 * tolerance));
  }
}

bool wrong(std::string_view fits, const CheckedRow& row) {
  return (fits == "no" && !row.run.out_of_memory) || (fits == "yes" && row.run.out_of_memory);
}

void hold_row(const Baseline::Row& before,
              const CheckedRow& row,
              Tolerances tolerances,
              std::vector<std::string>& failures) {
  const auto now = row_of(row);
  if (!before.fits.empty() && now.fits.empty()) {
    failures.push_back(fmt::format("{}: not predicted now: {}", row.run.id, row.skipped_because));
    return;
  }
  hold(row.run.id,
       "step time error",
       now.step_time_error,
       before.step_time_error,
       tolerances.time,
       failures);
  hold(row.run.id,
       "memory error",
       now.memory_error,
       before.memory_error,
       tolerances.memory,
       failures);
  if (wrong(now.fits, row) && !wrong(before.fits, row)) {
    failures.push_back(fmt::format("{}: fits {} now, {} in the baseline; it was {}",
                                   row.run.id,
                                   now.fits,
                                   before.fits,
                                   row.measured_status()));
  }
}

void hold_source(const std::string& name,
                 const Baseline::Source& before,
                 const Baseline::Source& now,
                 Tolerances tolerances,
                 std::vector<std::string>& failures) {
  const auto member = [](const std::optional<Baseline::Errors>& errors,
                         double Baseline::Errors::*of) {
    return errors ? std::optional((*errors).*of) : std::nullopt;
  };
  const auto both = [&](std::string_view figure, const auto& n, const auto& b) {
    hold("source " + name,
         fmt::format("median {} error", figure),
         member(n, &Baseline::Errors::median),
         member(b, &Baseline::Errors::median),
         tolerances.summary,
         failures);
    hold("source " + name,
         fmt::format("mean {} error", figure),
         member(n, &Baseline::Errors::mean),
         member(b, &Baseline::Errors::mean),
         tolerances.summary,
         failures);
  };
  both("step time", now.step_time, before.step_time);
  both("memory", now.memory, before.memory);
}

}  // namespace

Baseline baseline_of(const std::vector<CheckedRow>& rows,
                     std::string reason,
                     Tolerances tolerances) {
  Baseline baseline;
  baseline.reason = std::move(reason);
  baseline.tolerances = tolerances;
  for (const auto& row : rows) {
    if (row.skipped_because.empty()) baseline.rows.emplace(row.run.id, row_of(row));
  }
  baseline.sources = sources_of(rows);
  return baseline;
}

std::string to_json(const Baseline& baseline) {
  core::JsonWriter json;
  json.begin_object().member("reason", baseline.reason);
  json.member("time_tolerance", baseline.tolerances.time)
      .member("memory_tolerance", baseline.tolerances.memory)
      .member("summary_tolerance", baseline.tolerances.summary);
  json.key("sources").begin_object();
  for (const auto& [name, source] : baseline.sources) {
    json.key(name).begin_object();
    write_errors(json, "step_time", source.step_time);
    write_errors(json, "memory", source.memory);
    json.end_object();
  }
  json.end_object().key("rows").begin_object();
  for (const auto& [id, row] : baseline.rows) {
    json.key(id).begin_object();
    write_optional(json, "step_time_error", row.step_time_error);
    write_optional(json, "memory_error", row.memory_error);
    json.member("predicted_fits", row.fits).end_object();
  }
  return json.end_object().end_object().text();
}

Baseline read_baseline(const std::filesystem::path& file) {
  const auto document = core::Document::read_json_file(file);
  Baseline baseline;
  baseline.reason = document.at("reason").as_text();
  const auto tolerance = [&](std::string_view key) {
    const auto& value = document.at(key);
    if (value.as_real() < 0.0) value.complain("a tolerance of 0 or more");
    return value.as_real();
  };
  baseline.tolerances = {tolerance("time_tolerance"), tolerance("memory_tolerance"), tolerance("summary_tolerance")};
  for (const auto& [name, value] : document.at("sources").as_object()) {
    baseline.sources[name] = {read_errors(value, "step_time"), read_errors(value, "memory")};
    value.reject_unknown({"step_time", "memory"});
  }
  for (const auto& [id, value] : document.at("rows").as_object())
    baseline.rows[id] = read_row(value);
  document.reject_unknown(
      {"reason", "time_tolerance", "memory_tolerance", "summary_tolerance", "sources", "rows"});
  return baseline;
}

Comparison compare_with(const Baseline& baseline,
                        const std::vector<CheckedRow>& rows,
                        Tolerances tolerances) {
  Comparison out;
  std::size_t found = 0;
  for (const auto& row : rows) {
    const auto before = baseline.rows.find(row.run.id);
    if (before == baseline.rows.end()) {
      if (row.skipped_because.empty()) out.remarks.push_back(fmt::format("{}: not in the baseline", row.run.id));
      continue;
    }
    ++found;
    hold_row(before->second, row, tolerances, out.failures);
  }
  if (found < baseline.rows.size()) {
    out.failures.push_back(fmt::format("{} of the baseline's {} rows are not in the tables",
                                       baseline.rows.size() - found,
                                       baseline.rows.size()));
  }
  const auto now = sources_of(rows);
  for (const auto& [name, before] : baseline.sources) {
    const auto source = now.find(name);
    hold_source(name,
                before,
                source == now.end() ? Baseline::Source{} : source->second,
                tolerances,
                out.failures);
  }
  return out;
}

}  // namespace simulator

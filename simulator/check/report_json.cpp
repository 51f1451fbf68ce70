#include "core/io/json_writer.h"
#include "simulator/check/report.h"
#include "simulator/version.h"

namespace simulator {

namespace {

using core::JsonWriter;

void number(JsonWriter& json, std::string_view key, const std::optional<double>& value) {
  json.key(key);
  value ? json.value(*value) : json.null();
}

void texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& values) {
  json.key(key).begin_list();
  for (const auto& value : values) json.value(value);
  json.end_list();
}

void write_prediction(JsonWriter& json, const CheckedRow& row) {
  const auto* predicted = row.predicted ? &*row.predicted : nullptr;
  const auto* measured = row.measured ? &*row.measured : nullptr;
  number(json,
         "predicted_step_time_s",
         predicted ? std::optional(predicted->step_time_s) : std::nullopt);
  number(json, "measured_step_time_s", measured ? measured->step_time_s : std::nullopt);
  number(json, "step_time_error", row.step_time_error);
  number(json, "predicted_memory_GiB", row.predicted_memory_GiB);
  number(json, "measured_memory_GiB", measured ? measured->memory_GiB : std::nullopt);
  number(json, "memory_error", row.memory_error);
  json.key("predicted_fits");
  predicted ? json.value(name_of(predicted->fits)) : json.null();
  json.member("measured_status", row.measured_status());
  json.key("skipped_because");
  row.skipped_because.empty() ? json.null() : json.value(row.skipped_because);
}

// What goes beyond the keys that scripts depend on.
void write_more(JsonWriter& json, const CheckedRow& row) {
  json.member("source", row.source).member("table", row.run.table).member("line", row.run.line);
  if (!row.predicted) return;
  const auto& measured = *row.measured;
  json.member("plan", row.plan).member("recipe", row.recipe).member("our_gpu", row.gpu);
  json.member("predicted_step_time_low_s", row.predicted->low_s)
      .member("predicted_step_time_high_s", row.predicted->high_s);
  json.member("measured_step_time_from", measured.step_time_from);
  json.member("memory_kind", name_of(measured.memory_kind));
  json.member("predicted_peak_memory_GiB", row.predicted->peak_memory_GiB)
      .member("memory_limit_GiB", row.predicted->memory_limit_GiB);
  json.member("flops_convention", name_of(measured.convention));
  number(json, "predicted_tflops_per_gpu", row.predicted_tflops_per_gpu);
  number(json, "measured_tflops_per_gpu", measured.tflops_per_gpu);
  number(json, "predicted_mfu", row.predicted_mfu);
  number(json, "measured_mfu", measured.mfu);
  json.member("grain", core::name_of(row.predicted->grain));
  texts(json, "assumed", row.notes.assumed);
  texts(json, "ignored", row.notes.ignored);
  json.member("derived_in_source", row.run.derived_columns);
}

void write_row(JsonWriter& json, const CheckedRow& row) {
  json.begin_object()
      .member("id", row.run.id)
      .member("gpu", row.run.gpu)
      .member("framework", row.run.framework);
  write_prediction(json, row);
  write_more(json, row);
  json.end_object();
}

void write_errors(JsonWriter& json, std::string_view key, const ErrorSummary& s) {
  json.key(key).begin_object().member("n", static_cast<std::int64_t>(s.n));
  const auto of = [&](std::string_view name, double value) {
    number(json, name, s.n > 0 ? std::optional(value) : std::nullopt);
  };
  of("median_abs_error", s.median_abs), of("mean_abs_error", s.mean_abs),
      of("p90_abs_error", s.p90_abs), of("bias", s.bias);
  json.end_object();
}

void write_summary(JsonWriter& json, const Summary& s) {
  const auto count = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  write_errors(json, "step_time", s.step_time);
  number(json, "step_times_inside_interval", s.inside_interval);
  write_errors(json, "memory", s.memory);
  json.key("oom")
      .begin_object()
      .member("n", count(s.oom.n))
      .member("correct", count(s.oom.correct));
  json.member("false_fits", count(s.oom.false_fits)).member("false_ooms", count(s.oom.false_ooms));
  json.member("borderline", count(s.oom.borderline)).end_object();
  json.member("skipped", count(s.skipped));
}

void write_groups(JsonWriter& json, const std::vector<PlanGroup>& groups) {
  json.key("plan_groups").begin_list();
  for (const auto& g : groups) {
    json.begin_object()
        .member("source", g.source)
        .member("what", g.what)
        .member("plans", static_cast<std::int64_t>(g.plans));
    json.member("first_extra_time", g.first_extra)
        .member("best_of_three_extra_time", g.best_of_three_extra);
    json.member("fastest_in_first_three", g.fastest_in_first_three)
        .member("kendall_tau", g.kendall_tau)
        .end_object();
  }
  json.end_list();
}

}  // namespace

std::string check_json(const CheckReport& report) {
  JsonWriter json;
  json.begin_object().member("version", version());
  json.key("rows").begin_list();
  for (const auto& row : report.rows) write_row(json, row);
  json.end_list();
  json.key("summary").begin_object();
  write_summary(json, summarise_all(report.rows));
  for (std::size_t i = 0; i < groupings; ++i) {
    const auto by = static_cast<GroupBy>(i);
    json.key(std::string("by_").append(name_of(by))).begin_object();
    for (const auto& [name, summary] : summarise_by(report.rows, by)) {
      json.key(name).begin_object();
      write_summary(json, summary);
      json.end_object();
    }
    json.end_object();
  }
  json.end_object();
  write_groups(json, report.groups);
  texts(json, "failures", report.failures);
  texts(json, "remarks", report.remarks);
  if (report.elapsed_s) json.member("elapsed_s", *report.elapsed_s);
  return json.end_object().text();
}

}  // namespace simulator

#include "core/io/json_writer.h"
#include "fitting/precision/gaps_report.h"

namespace fitting {
namespace {

void member(core::JsonWriter& json, const char* key, const std::optional<double>& value) {
  json.key(key);
  if (value) json.value(*value);
  else json.null();
}

void range_json(core::JsonWriter& json, const char* key, const GapRange& gap) {
  json.key(key).begin_object();
  member(json, "value", gap.value);
  json.member("low", gap.low).member("high", gap.high).end_object();
}

void summary_json(core::JsonWriter& json, const char* key, const RatioSummary& summary) {
  json.key(key).begin_object().member("rows", static_cast<std::int64_t>(summary.rows));
  if (summary.rows > 0) json.member("median", summary.median).member("rms_factor", summary.rms_factor);
  json.end_object();
}

void group_json(core::JsonWriter& json, const GapGroup& group) {
  json.begin_object().member("name", group.name).member("rows", static_cast<std::int64_t>(group.rows));
  json.member("values", static_cast<std::int64_t>(group.values)).member("inside_range", static_cast<std::int64_t>(group.inside));
  json.member("bounds", static_cast<std::int64_t>(group.bounds)).member("bounds_kept", static_cast<std::int64_t>(group.bounds_kept));
  summary_json(json, "ratio", group.ratios);
  json.key("laws").begin_object();
  summary_json(json, "kumar", group.kumar);
  summary_json(json, "sun", group.sun);
  summary_json(json, "chen_w4a4", group.chen);
  summary_json(json, "eff_N_0.64", group.eff_64);
  json.end_object().end_object();
}

void laws_json(core::JsonWriter& json, const LawsSideBySide& laws) {
  json.key("laws_percent").begin_object();
  member(json, "kumar", laws.kumar);
  member(json, "sun", laws.sun);
  member(json, "chen_w4a4", laws.chen);
  member(json, "eff_N_0.64", laws.eff_64);
  json.end_object();
}

void compared_json(core::JsonWriter& json, const ComparedGap& c) {
  json.begin_object().member("id", c.row.id).member("line", c.row.line).member("recipe", c.row.recipe).member("method", c.row.method);
  member(json, "N", c.row.N);
  member(json, "D", c.row.D);
  json.member("group", c.predicted.group).member("by", c.predicted.by).member("base_law", c.predicted.base);
  if (!c.predicted.note.empty()) json.member("note", c.predicted.note);
  json.member("unit", c.unit).member("measured", c.measured).member("bound", c.bound);
  range_json(json, "predicted", c.range);
  member(json, "ratio", c.ratio);
  json.member("inside", c.inside);
  member(json, "measured_nats", c.measured_nats);
  if (c.unit == "%" && c.predicted.nats) range_json(json, "predicted_nats", *c.predicted.nats);
  if (c.predicted.laws) laws_json(json, *c.predicted.laws);
  if (c.predicted.floor) json.key("floor").begin_object().member("grade", name_of(c.predicted.floor->grade)).member("why", c.predicted.floor->why).end_object();
  if (!c.predicted.flag.empty()) json.member("flag", c.predicted.flag);
  json.member("source", c.row.source).end_object();
}

}  // namespace

std::string gaps_json(const GapReport& report, const std::string& version) {
  core::JsonWriter json;
  json.begin_object().member("version", version).member("file", report.file).key("groups").begin_list();
  for (const auto& group : report.groups) group_json(json, group);
  json.end_list().key("rows").begin_list();
  for (const auto& compared : report.compared) compared_json(json, compared);
  json.end_list().key("not_compared").begin_list();
  for (const auto& s : report.skipped) json.begin_object().member("id", s.id).member("line", s.line).member("why", s.why).end_object();
  return json.end_list().end_object().text();
}

}  // namespace fitting

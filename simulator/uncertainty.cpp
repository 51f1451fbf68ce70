#include "simulator/uncertainty.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/hardware/figures.h"
#include "core/io/data_dir.h"
#include "core/io/json_writer.h"

namespace simulator {

namespace {

constexpr std::int64_t most_rows = std::int64_t{1} << 30;

// Reads a plain number, which has no source of its own: the command that made the file is its source.
double number_in(const core::Document& object, std::string_view key, double low, double high) {
  const auto& member = object.at(key);
  const double value = member.as_real();
  if (value < low || value > high) member.complain(fmt::format("a number from {} to {}", low, high));
  return value;
}

ClassBand class_in(const core::Document& entry) {
  ClassBand band;
  if (const auto* experts = entry.find("experts")) band.runs.experts = experts->as_bool();
  if (const auto* software = entry.find("software")) band.runs.software = software->as_text();
  if (const auto* curves = entry.find("own_curves")) band.runs.own_curves = curves->as_bool();
  band.rows = entry.at("rows").as_int(1, most_rows);
  band.sources = entry.at("sources").as_int(1, most_rows);
  band.low = number_in(entry, "low", 1e-3, 1.0);
  band.high = number_in(entry, "high", 1.0, 1e3);
  band.after_one_run = number_in(entry, "after_one_run", 0.0, 10.0);
  entry.reject_unknown({"experts", "software", "own_curves", "rows", "sources", "low", "high", "after_one_run"});
  return band;
}

void write_class(core::JsonWriter& json, const ClassBand& band) {
  json.begin_object();
  if (band.runs.experts) json.member("experts", *band.runs.experts);
  if (band.runs.software) json.member("software", *band.runs.software);
  if (band.runs.own_curves) json.member("own_curves", *band.runs.own_curves);
  json.member("rows", band.rows).member("sources", band.sources);
  json.member("low", band.low).member("high", band.high).member("after_one_run", band.after_one_run).end_object();
}

std::string factors_text(double low, double high) { return fmt::format("{:.2f} to {:.2f} times the prediction", low, high); }

}  // namespace

const ClassBand& Uncertainty::narrowest(const RunClass& run) const {
  const auto found = std::find_if(classes.rbegin(), classes.rend(), [&](const ClassBand& c) { return c.runs.holds(run); });
  CORE_ASSERT(found != classes.rend());
  return *found;
}

const Uncertainty& uncertainty() {
  static const Uncertainty value = read_uncertainty(core::data_dir() / "uncertainty.json");
  return value;
}

SoftwareGroup software_group_of(const core::Document& entry) {
  SoftwareGroup group;
  group.name = entry.at("name").as_text();
  for (const auto& framework : entry.at("frameworks").as_list()) group.frameworks.push_back(framework.as_text());
  entry.reject_unknown({"name", "frameworks"});
  return group;
}

Uncertainty read_uncertainty(const std::filesystem::path& file) {
  const auto root = core::Document::read_json_file(file);
  Uncertainty u;
  root.at("title").as_text();
  u.command = root.at("command").as_text();
  u.share = number_in(root, "share", 0.01, 0.999);
  core::Figures::Sources sources;
  u.unmeasured_widening = core::Figures(root, sources).positive("unmeasured_widening");
  u.unmeasured_source = sources.front().second.source;
  for (const auto& entry : root.at("software").as_list()) u.software.push_back(software_group_of(entry));
  for (const auto& name : root.at("architectures").as_list()) u.architectures.push_back(name.as_text());
  for (const auto& entry : root.at("classes").as_list()) u.classes.push_back(class_in(entry));
  if (u.classes.empty() || u.classes.front().runs != RunPattern{}) root.at("classes").complain("all runs as the first class");
  for (const auto& [what, half] : root.at("after_other_run").as_object()) u.after_other_run.emplace(what, half.as_real());
  root.reject_unknown(
      {"title", "command", "share", "unmeasured_widening", "software", "architectures", "classes", "after_other_run"});
  return u;
}

std::string to_json(const Uncertainty& u) {
  core::JsonWriter json;
  json.begin_object().member("title", "How far measured step times lie from predicted ones");
  json.member("command", u.command).member("share", u.share);
  json.key("unmeasured_widening").begin_object();
  json.member("value", u.unmeasured_widening).member("source", u.unmeasured_source).member("checked", "estimate").end_object();
  json.key("software").begin_list();
  for (const auto& group : u.software) {
    json.begin_object().member("name", group.name).key("frameworks").begin_list();
    for (const auto& framework : group.frameworks) json.value(framework);
    json.end_list().end_object();
  }
  json.end_list().key("architectures").begin_list();
  for (const auto& name : u.architectures) json.value(name);
  json.end_list().key("classes").begin_list();
  for (const auto& band : u.classes) write_class(json, band);
  json.end_list().key("after_other_run").begin_object();
  for (const auto& [what, half] : u.after_other_run) json.member(what, half);
  return json.end_object().end_object().text();
}

Band band_of(const Uncertainty& u, const RunClass& run, const std::string& architecture) {
  const auto& runs = u.narrowest(run);
  Band band{runs.low, runs.high, ""};
  band.because = fmt::format("{:.0f} % of comparable measured runs took {} ({}: {} runs of {} sources)", 100.0 * u.share,
                             factors_text(runs.low, runs.high), runs.runs.text(), runs.rows, runs.sources);
  if (std::find(u.architectures.begin(), u.architectures.end(), architecture) != u.architectures.end()) return band;
  band.low = std::pow(runs.low, u.unmeasured_widening);
  band.high = std::pow(runs.high, u.unmeasured_widening);
  band.because +=
      fmt::format("; no run on {} has been measured: widened to {}", architecture, factors_text(band.low, band.high));
  return band;
}

namespace {

// Log of a factor either way by which runs that have calibrated a system leave a run uncertain; nothing where they tell
// nothing.
struct AfterRuns {
  double half = 0.0;
  std::size_t runs = 0;
};

std::size_t differences(const CalibratingRun& by, const RunClass& run, const std::string& gpu) {
  return static_cast<std::size_t>(by.gpu != gpu) + static_cast<std::size_t>(by.runs.experts != run.experts) +
         static_cast<std::size_t>(by.runs.software != run.software);
}

std::optional<AfterRuns> after_runs(const Uncertainty& u,
                                    const RunClass& run,
                                    const std::string& gpu,
                                    const std::vector<CalibratingRun>& by) {
  std::size_t alike = 0, other = 0;
  double half = 0.0;
  for (const auto& each : by) {
    const auto differs = differences(each, run, gpu);
    if (differs == 0) ++alike;
    if (differs != 1 || each.runs.software != run.software) continue;
    const auto found = u.after_other_run.find(each.gpu != gpu ? "gpu" : "experts");
    if (found == u.after_other_run.end()) continue;
    half = other == 0 ? found->second : std::min(half, found->second);
    ++other;
  }
  if (alike > 0) return AfterRuns{u.narrowest(run).after_one_run, alike};
  if (other > 0) return AfterRuns{half, 1};
  return std::nullopt;
}

}  // namespace

Band narrowed(const Uncertainty& u,
              const Band& before,
              const RunClass& run,
              const std::string& gpu,
              const std::vector<CalibratingRun>& by) {
  Band band = before;
  const auto after = after_runs(u, run, gpu, by);
  if (!after) {
    band.because = "calibrated by runs that are not comparable, which does not narrow the interval: " + before.because;
    return band;
  }
  // One run is off by its own scatter and the predicted run's: twice the variance inside a source; n runs by (1 + 1/n) of it.
  const double n = static_cast<double>(after->runs), half = after->half * std::sqrt((1.0 + 1.0 / n) / 2.0);
  band.low = std::max(before.low, std::exp(-half));
  band.high = std::min(before.high, std::exp(half));
  const bool narrower = band.low > before.low || band.high < before.high;
  band.because = fmt::format("{:.0f} % of runs of a system that {} run{} calibrated took {}; {}", 100.0 * u.share, by.size(),
                             by.size() > 1 ? "s have" : " has", factors_text(band.low, band.high),
                             narrower ? "without calibration " + factors_text(before.low, before.high)
                                      : "that is no narrower than without calibration");
  return band;
}

std::string difference_text(const CalibratingRun& by, const RunClass& run, const std::string& gpu) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (by.gpu != gpu) add(fmt::format("another GPU ({}, not {})", by.gpu, gpu));
  if (by.runs.experts != run.experts)
    add(by.runs.experts ? "a mixture of experts, not a dense model" : "a dense model, not a mixture of experts");
  if (by.runs.software != run.software)
    add(fmt::format("other software ({}, not {})", by.runs.software.empty() ? "in no class" : by.runs.software,
                    run.software.empty() ? "one in no class" : run.software));
  return out;
}

}  // namespace simulator

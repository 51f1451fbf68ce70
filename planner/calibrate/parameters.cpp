#include "planner/calibrate/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "planner/calibrate/data_text.h"

namespace planner {

namespace {

double sourced(const core::Document& root, std::string_view key) {
  const auto& figure = root.at(key);
  figure.reject_unknown({"value", "source"});
  if (figure.at("source").as_text().empty()) figure.at("source").complain("why this number");
  return figure.at("value").as_positive_real();
}

const std::string& words(const core::Document& object, std::string_view key) {
  const auto& text = object.at(key);
  if (text.as_text().empty()) text.complain("some words");
  return text.as_text();
}

std::vector<double> starts(const core::Document& start) {
  std::vector<double> values;
  if (!start.is_list()) return {start.as_positive_real()};
  for (const auto& each : start.as_list()) values.push_back(each.as_positive_real());
  if (values.empty()) start.complain("at least one number");
  return values;
}

// The target must stand in its file with as many numbers as it starts with.
void check_target(const core::Document& where, const Target& target) {
  const auto file = core::data_dir() / target.folder / (target.name + ".json");
  if (!std::filesystem::is_regular_file(file))
    where.at("file").complain("a file below data/curves or data/frameworks");
  const auto root = core::Document::read_json_file(file);
  const core::Document* leaf = member_at(root, target.key);
  if (leaf == nullptr || !leaf->is_object() || !(leaf->has("value") || leaf->has("values")))
    where.at("key").complain("the key of a number in " + target.file());
  const std::size_t numbers = leaf->has("value") ? 1 : leaf->at("values").as_list().size();
  if (numbers != target.start.size())
    where.at("start").complain(fmt::format("{} numbers, as in {}", numbers, target.file()));
}

Target target_of(const core::Document& where) {
  Target target;
  const auto& file = where.at("file");
  const std::filesystem::path path = file.as_text();
  target.folder = path.parent_path().string();
  target.name = path.stem().string();
  if ((target.folder != "curves" && target.folder != "frameworks") || path.extension() != ".json")
    file.complain("curves/NAME.json or frameworks/NAME.json");
  target.key = words(where, "key");
  target.start = starts(where.at("start"));
  check_target(where, target);
  return target;
}

void check_bounds(const core::Document& entry, const Parameter& p) {
  if (!(p.low < p.high) || p.start() < p.low || p.start() > p.high)
    entry.at("start").complain(fmt::format("a start between low {} and high {}", p.low, p.high));
}

Parameter parameter_of(const core::Document& entry) {
  entry.reject_unknown({"name",
                        "meaning",
                        "file",
                        "key",
                        "start",
                        "low",
                        "high",
                        "log_sigma",
                        "reason",
                        "with",
                        "each"});
  Parameter p;
  p.name = words(entry, "name");
  p.meaning = words(entry, "meaning");
  p.reason = words(entry, "reason");
  p.targets.push_back(target_of(entry));
  p.low = entry.at("low").as_positive_real();
  p.high = entry.at("high").as_positive_real();
  p.log_sigma = entry.at("log_sigma").as_positive_real();
  if (const auto* with = entry.find("with")) {
    for (const auto& each : with->as_list()) {
      each.reject_unknown({"file", "key", "start"});
      p.targets.push_back(target_of(each));
    }
  }
  return p;
}

// A parameter for each number of the targets' lists, named after it and what "each" calls it.
std::vector<Parameter> one_by_one(const core::Document& entry, const Parameter& whole) {
  const auto& names = entry.at("each").as_list();
  if (std::ranges::any_of(whole.targets,
                          [&](const Target& target) { return target.start.size() != names.size(); }))
    entry.at("each").complain("a name for each number of the lists");
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto p = whole;
    p.name += ", " + names[i].as_text();
    for (auto& target : p.targets) {
      target.start = {target.start[i]};
      target.element = i;
    }
    check_bounds(entry, p);
    parameters.push_back(std::move(p));
  }
  return parameters;
}

}  // namespace

CalibrationSpec read_calibration(const std::filesystem::path& file) {
  const auto root = core::Document::read_json_file(file);
  root.reject_unknown({"title", "noise", "huber", "source_most", "source_weights", "parameters"});
  root.at("title").as_text();
  CalibrationSpec spec;
  read_noise(root, spec);
  for (const auto& [source, weight] : root.at("source_weights").as_object()) {
    weight.reject_unknown({"weight", "reason"});
    words(weight, "reason");
    spec.source_weights.emplace(source, weight.at("weight").as_positive_real());
  }
  std::set<std::string> targets;
  spec.parameters = read_parameters(root.at("parameters"), targets);
  return spec;
}

void read_noise(const core::Document& root, CalibrationSpec& spec) {
  spec.noise = sourced(root, "noise");
  spec.huber = sourced(root, "huber");
  spec.source_most = sourced(root, "source_most");
}

std::vector<Parameter> read_parameters(const core::Document& list, std::set<std::string>& targets) {
  std::set<std::string> names;
  std::vector<Parameter> parameters;
  for (const auto& entry : list.as_list()) {
    const auto p = parameter_of(entry);
    if (!names.insert(p.name).second) entry.at("name").complain("a name that stands once");
    for (const auto& target : p.targets) {
      if (!targets.insert(target.file() + ":" + target.key).second)
        entry.at("key").complain("targets that stand once");
    }
    if (entry.has("each")) {
      for (auto& part : one_by_one(entry, p)) parameters.push_back(std::move(part));
    } else {
      check_bounds(entry, p);
      parameters.push_back(p);
    }
  }
  if (parameters.empty()) list.complain("at least one parameter");
  return parameters;
}

double weight_of_each(std::size_t n, double most) {
  const auto rows = static_cast<double>(n);
  return std::min(std::sqrt(rows), most) / rows;
}

}  // namespace planner

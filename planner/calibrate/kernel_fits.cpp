#include "planner/calibrate/kernel_fits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "planner/calibrate/kernel_rows.h"

namespace planner {

namespace {

std::vector<std::string> texts(const core::Document& list) {
  std::vector<std::string> result;
  for (const auto& each : list.as_list()) result.push_back(each.as_text());
  if (result.empty()) list.complain("at least one text");
  return result;
}

std::map<std::string, std::vector<std::string>> texts_by_column(const core::Document* object) {
  std::map<std::string, std::vector<std::string>> result;
  if (object == nullptr) return result;
  for (const auto& [column, list] : object->as_object()) result.emplace(column, texts(list));
  return result;
}

RowChoice::Lighter lighter_of(const core::Document& object) {
  object.reject_unknown({"column", "below", "weight", "reason"});
  if (object.at("reason").as_text().empty()) object.at("reason").complain("some words");
  return {object.at("column").as_text(),
          object.at("below").as_positive_real(),
          object.at("weight").as_positive_real()};
}

RowChoice choice_of(const core::Document& object) {
  object.reject_unknown({"kind", "tables", "where", "without", "at_least", "source", "lighter"});
  RowChoice choice;
  const auto kinds = kernel_kinds();
  choice.kind = object.at("kind").as_text();
  if (std::ranges::find(kinds, choice.kind) == kinds.end())
    object.at("kind").complain(fmt::format("one of {}", fmt::join(kinds, ", ")));
  choice.tables = texts(object.at("tables"));
  choice.where = texts_by_column(object.find("where"));
  choice.without = texts_by_column(object.find("without"));
  if (const auto* at_least = object.find("at_least")) {
    for (const auto& [column, least] : at_least->as_object())
      choice.at_least.emplace(column, least.as_positive_real());
  }
  choice.source = texts(object.at("source"));
  if (const auto* lighter = object.find("lighter")) choice.lighter = lighter_of(*lighter);
  return choice;
}

}  // namespace

std::vector<KernelFit> read_kernel_fits(const std::filesystem::path& file) {
  const auto root = core::Document::read_json_file(file);
  root.reject_unknown({"title", "noise", "huber", "source_most", "fits"});
  root.at("title").as_text();
  CalibrationSpec common;
  common.measures = "time";
  read_noise(root, common);
  std::vector<KernelFit> fits;
  std::set<std::string> names, targets;
  for (const auto& entry : root.at("fits").as_list()) {
    entry.reject_unknown({"name", "rows", "parameters"});
    KernelFit fit;
    fit.name = entry.at("name").as_text();
    if (!names.insert(fit.name).second) entry.at("name").complain("a name that stands once");
    fit.rows = choice_of(entry.at("rows"));
    fit.spec = common;
    fit.spec.parameters = read_parameters(entry.at("parameters"), targets);
    fits.push_back(std::move(fit));
  }
  if (fits.empty()) root.at("fits").complain("at least one fit");
  return fits;
}

}  // namespace planner

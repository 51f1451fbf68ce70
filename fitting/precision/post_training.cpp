#include "fitting/precision/post_training.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"
#include "fitting/fitted_law.h"

namespace fitting {
namespace {

struct Table {
  std::string law;
  Ranged share;
  double flat_from = 0.0;
  std::vector<PostTraining> choices;
};

PostTraining choice_in(const core::Document& entry, const std::string& name) {
  PostTraining out;
  out.name = name;
  out.tensor = entry.at("tensor").as_text();
  out.bits = entry.at("bits").as_positive_real();
  out.unit = entry.at("unit").as_text();
  if (out.unit != "nats" && out.unit != "points") entry.at("unit").complain("nats or points");
  if (const auto* task = entry.find("task")) out.task = task->as_text();
  if (const auto* flat = entry.find("flat")) {
    out.by_law = true;
    out.gap = gap_range_in(*flat);
    flat->reject_unknown({"value", "low", "high"});
  } else {
    out.gap = gap_range_in(entry);
  }
  if (const auto* flag = entry.find("flag")) out.flag = flag->as_text();
  out.source = entry.at("source").as_text();
  entry.reject_unknown({"tensor", "bits", "unit", "task", "flat", "value", "low", "high", "flag", "source"});
  return out;
}

const Table& table() {
  static const Table read = [] {
    Table out;
    const auto file = core::Document::read_json_file(core::data_dir() / "post_training.json");
    file.at("rule").mark_used();
    out.law = file.at("law").as_text();
    const auto& share = file.at("share");
    out.share = {share.at("value").as_positive_real(), share.at("low").as_positive_real(), share.at("high").as_positive_real()};
    out.flat_from = file.at("flat_from").as_positive_real();
    for (const auto& [name, entry] : file.at("choices").as_object()) out.choices.push_back(choice_in(entry, name));
    file.reject_unknown({"rule", "law", "share", "flat_from", "choices"});
    return out;
  }();
  return read;
}

}  // namespace

const std::vector<PostTraining>& post_training_choices() { return table().choices; }

const PostTraining& post_training(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& choice : table().choices) {
    if (choice.name == name) return choice;
    known.push_back(choice.name);
  }
  const auto near = core::nearest_name(name, known);
  throw core::InputError(fmt::format("choice: found \"{}\", expected one of `fit gaps --list post-training`{}",
                                     core::printable(name), near ? fmt::format("; nearest is {}", *near) : ""));
}

std::optional<GapRange> post_training_gap(const PostTraining& choice, std::optional<double> N, std::optional<double> D) {
  if (!choice.by_law) return choice.gap;
  if (!N) return std::nullopt;
  if (*N >= table().flat_from) return choice.gap;
  if (!D) return std::nullopt;
  const auto law = fitted_law(table().law);
  const double delta = LawFunction(law.law).value(law.parameters, variables_of(law.law, {{"N", *N}, {"D", *D}, {"P", choice.bits}}));
  const auto& share = table().share;
  return GapRange{share.value * delta, share.low * delta, share.high * delta};
}

std::string post_training_law(const PostTraining& choice, std::optional<double> N) {
  return choice.by_law && N && *N < table().flat_from ? table().law : "";
}

std::string post_training_text(std::optional<double> N, std::optional<double> D) {
  std::string out;
  for (const auto& choice : table().choices) {
    const auto gap = post_training_gap(choice, N, D);
    std::string says = "needs --N and --D";
    if (gap) says = fmt::format("{} ({:.2g} to {:.2g}) {}{}", gap->value ? fmt::format("{:.2g}", *gap->value) : "-", gap->low, gap->high,
                                choice.unit, choice.task.empty() ? "" : " of " + choice.task);
    out += fmt::format("{:<26} {:<36} {}{}\n", choice.name, says, choice.source, choice.flag.empty() ? "" : "; " + choice.flag);
  }
  return out;
}

}  // namespace fitting

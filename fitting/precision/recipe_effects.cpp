#include "fitting/precision/recipe_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace fitting {
namespace {

Ranged factor_in(const core::Document& entry) {
  const Ranged f{entry.at("value").as_positive_real(), entry.at("low").as_positive_real(), entry.at("high").as_positive_real()};
  if (f.low > f.value || f.value > f.high || f.high > 1.0) entry.complain("low <= value <= high <= 1");
  entry.reject_unknown({"value", "low", "high"});
  return f;
}

RecipeEffect effect_in(const core::Document& entry, const std::string& name) {
  RecipeEffect out;
  out.name = name;
  if (const auto* gap = entry.find("gap_percent")) {
    out.gap_percent = gap_range_in(*gap);
    gap->reject_unknown({"value", "low", "high"});
  } else {
    out.parameters = factor_in(entry.at("effective_parameters"));
    out.tokens = factor_in(entry.at("effective_tokens"));
  }
  if (const auto* flag = entry.find("flag")) out.flag = flag->as_text();
  out.source = entry.at("source").as_text();
  entry.reject_unknown({"effective_parameters", "effective_tokens", "gap_percent", "flag", "source"});
  return out;
}

void read_file(const std::string& file, const std::string& list, std::vector<RecipeEffect>& out) {
  const auto document = core::Document::read_json_file(core::data_dir() / file);
  document.at("rule").mark_used();
  for (const auto& [name, entry] : document.at(list).as_object()) out.push_back(effect_in(entry, name));
  document.reject_unknown({"rule", list});
}

Ranged product(const Ranged& a, const Ranged& b) { return {a.value * b.value, a.low * b.low, a.high * b.high}; }

}  // namespace

const std::vector<RecipeEffect>& recipe_effects() {
  static const std::vector<RecipeEffect> effects = [] {
    std::vector<RecipeEffect> read;
    read_file("precision.json", "recipes", read);
    read_file("precision_methods.json", "methods", read);
    return read;
  }();
  return effects;
}

const RecipeEffect& recipe_effect(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& effect : recipe_effects()) {
    if (effect.name == name) return effect;
    known.push_back(effect.name);
  }
  const auto near = core::nearest_name(name, known);
  throw core::InputError(fmt::format("recipe: found \"{}\", expected one of `fit gaps --list recipes`{}",
                                     core::printable(name), near ? fmt::format("; nearest is {}", *near) : ""));
}

RecipeEffect combined(const RecipeEffect& a, const RecipeEffect& b) {
  CORE_ASSERT(!a.gap_percent && !b.gap_percent);
  RecipeEffect out;
  out.name = a.name + " + " + b.name;
  out.parameters = product(a.parameters, b.parameters);
  out.tokens = product(a.tokens, b.tokens);
  out.flag = a.flag.empty() || b.flag.empty() ? a.flag + b.flag : a.flag + "; " + b.flag;
  out.source = a.source + "; " + b.source;
  return out;
}

GapRange gap_range_in(const core::Document& entry) {
  GapRange gap;
  if (const auto* value = entry.find("value")) gap.value = value->as_real();
  gap.low = entry.at("low").as_real();
  gap.high = entry.at("high").as_real();
  const double middle = gap.value.value_or(gap.low);
  if (gap.low > middle || middle > gap.high) entry.complain("low <= value <= high");
  return gap;
}

double effective_parameters(double gap, double N, double A, double alpha) {
  return std::pow(1.0 + gap / (A * std::pow(N, -alpha)), -1.0 / alpha);
}

}  // namespace fitting

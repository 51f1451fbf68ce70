#include "fitting/evaluate.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/io/json_writer.h"
#include "fitting/solver/bootstrap.h"

namespace fitting {

std::vector<std::string> extrapolations(const FittedLaw& law, const std::vector<double>& variables) {
  std::vector<std::string> lines;
  const auto check = [&](const std::string& name, double value) {
    const auto range = law.range.find(name);
    if (range == law.range.end() || !std::isfinite(value)) return;
    const auto [low, high] = range->second;
    if (value > high * 1.0001) lines.push_back(fmt::format("{} = {:.3g} is {:.3g} times the largest run of {} ({:.3g})", name, value, value / high, law.name, high));
    if (value < low / 1.0001) lines.push_back(fmt::format("{} = {:.3g} is {:.3g} of the smallest run of {} ({:.3g})", name, value, value / low, law.name, low));
  };
  for (std::size_t v = 0; v < variables.size(); ++v) check(law.law.variables[v].name, variables[v]);
  if (!law.law.training_flops.empty()) check("C", training_flops(law.law, variables));
  return lines;
}

LawValue evaluate(const FittedLaw& law, const std::map<std::string, double>& values, double confidence) {
  LawValue result;
  result.law = law;
  result.variables = variables_of(law.law, values);
  const LawFunction function(law.law);
  result.value = function.value(law.parameters, result.variables);
  if (!std::isfinite(result.value)) throw core::InputError(fmt::format("{}: has no value there, expected a point where its formula is defined", law.name));
  result.bindings = function.bindings(law.parameters, result.variables);
  if (!law.draws.empty()) {
    std::vector<double> drawn;
    for (const auto& draw : law.draws) drawn.push_back(function.value(draw, result.variables));
    result.interval = percentile_interval(std::move(drawn), confidence);
  }
  if (!law.law.training_flops.empty()) result.flops = training_flops(law.law, result.variables);
  result.warnings = extrapolations(law, result.variables);
  result.warnings.insert(result.warnings.end(), law.warnings.begin(), law.warnings.end());
  return result;
}

std::string evaluation_table(const LawValue& value) {
  const auto& law = value.law.law;
  std::string out = fmt::format("{} = {:.8g}", law.output, value.value);
  if (value.interval) out += fmt::format("   ({:.6g} to {:.6g})", value.interval->low, value.interval->high);
  out += fmt::format("   {}\n", law.output_meaning);
  out += fmt::format("  {}: {} = {}\n", value.law.name, law.output, law.formula);
  for (std::size_t v = 0; v < value.variables.size(); ++v) {
    out += fmt::format("  {:<10} {:.6g}   {}\n", law.variables[v].name, value.variables[v], law.variables[v].meaning);
  }
  for (const auto& [name, bound] : value.bindings) out += fmt::format("  {:<10} {:.8g}\n", name, bound);
  if (value.flops) out += fmt::format("  {:<10} {:.6g}   training FLOPs\n", "C", *value.flops);
  return out + fmt::format("  constants: {}\n", value.law.source);
}

std::string evaluation_json(const LawValue& value, const std::string& version) {
  const auto& law = value.law.law;
  core::JsonWriter json;
  json.begin_object().member("version", version).member("law", value.law.name).member("formula", law.formula);
  json.key("variables").begin_object();
  for (std::size_t v = 0; v < value.variables.size(); ++v) json.member(law.variables[v].name, value.variables[v]);
  json.end_object().member("output", law.output).member("value", value.value);
  if (value.interval) json.member("low", value.interval->low).member("high", value.interval->high);
  json.member("meaning", law.output_meaning).key("intermediate").begin_object();
  for (const auto& [name, bound] : value.bindings) json.member(name, bound);
  json.end_object();
  if (value.flops) json.member("training_flops", *value.flops);
  json.key("sources").begin_list().value(value.law.source).end_list().key("warnings").begin_list();
  for (const auto& warning : value.warnings) json.value(warning);
  return json.end_list().end_object().text();
}

}  // namespace fitting

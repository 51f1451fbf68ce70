#include "fitting/fitted_law.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"
#include "core/io/json_writer.h"

namespace fitting {
namespace {

const std::vector<std::string_view> known_keys = {"version", "law", "title", "source", "checked", "counts", "formula", "output",
                                                  "training_flops", "parameters", "range", "warnings", "draws", "draws_from", "variables"};

// The form: one of ours by name, or the formula in the file.
Law law_in(const core::Document& file) {
  const auto name = file.at("law").as_text();
  if (name != "formula") return law_of(name);
  Law law;
  law.name = name;
  law.title = "a formula of its own";
  law.source = file.where();
  law.formula = file.at("formula").as_text();
  for (const auto& variable : file.at("variables").as_list()) law.variables.push_back({variable.as_text(), variable.as_text()});
  for (const auto& [parameter, value] : file.at("parameters").as_object()) law.parameters.push_back({parameter, -1e300, 1e300, {}});
  if (const auto* flops = file.find("training_flops")) law.training_flops = flops->as_text();
  return law;
}

std::vector<double> reals(const core::Document& list, std::size_t expected) {
  std::vector<double> values;
  for (const auto& v : list.as_list()) values.push_back(v.as_real());
  if (values.size() != expected) list.complain(fmt::format("{} numbers", expected));
  return values;
}

std::vector<double> parameters_in(const core::Document& object, const Law& law) {
  std::vector<double> values;
  for (const auto& parameter : law.parameters) values.push_back(object.at(parameter.name).as_real());
  if (object.as_object().size() != values.size()) object.complain(fmt::format("the {} parameters of {}", values.size(), law.name));
  return values;
}

FittedLaw read(const std::filesystem::path& path, const std::string& name) {
  const auto file = core::Document::read_json_file(path);
  FittedLaw fitted;
  fitted.name = name;
  fitted.law = law_in(file);
  fitted.source = file.at("source").as_text();
  fitted.parameters = parameters_in(file.at("parameters"), fitted.law);
  if (const auto* counts = file.find("counts")) fitted.counts = counts->as_text();
  if (const auto* range = file.find("range")) {
    for (const auto& [symbol, ends] : range->as_object()) {
      const auto both = reals(ends, 2);
      fitted.range[symbol] = {both[0], both[1]};
    }
  }
  if (const auto* warnings = file.find("warnings")) {
    for (const auto& warning : warnings->as_list()) fitted.warnings.push_back(warning.as_text());
  }
  if (const auto* draws = file.find("draws")) {
    for (const auto& draw : draws->as_list()) fitted.draws.push_back(reals(draw, fitted.parameters.size()));
  }
  for (const auto* key : {"version", "title", "checked", "formula", "output", "training_flops", "variables", "draws_from"}) {
    if (const auto* value = file.find(key)) value->mark_used();
  }
  file.reject_unknown(known_keys);
  return fitted;
}

bool names_file(const std::string& name) {
  return name.find('/') != std::string::npos || (name.size() > 5 && name.substr(name.size() - 5) == ".json");
}

}  // namespace

FittedLaw fitted_law(const std::string& name) {
  return names_file(name) ? read(name, name) : read(core::data_file("laws", name, "law"), name);
}

std::vector<std::string> fitted_law_names() { return core::data_names("laws"); }

std::string fitted_law_json(const FittedLaw& fitted) {
  core::JsonWriter json;
  json.begin_object().member("law", fitted.law.name).member("source", fitted.source).member("counts", fitted.counts);
  json.member("formula", fitted.law.formula).member("output", fitted.law.output);
  json.member("training_flops", fitted.law.training_flops);
  json.key("variables").begin_list();
  for (const auto& variable : fitted.law.variables) json.value(variable.name);
  json.end_list().key("parameters").begin_object();
  for (std::size_t i = 0; i < fitted.parameters.size(); ++i) json.member(fitted.law.parameters[i].name, fitted.parameters[i]);
  json.end_object().key("range").begin_object();
  for (const auto& [symbol, ends] : fitted.range) json.key(symbol).begin_list().value(ends.low).value(ends.high).end_list();
  json.end_object().key("warnings").begin_list();
  for (const auto& warning : fitted.warnings) json.value(warning);
  json.end_list().key("draws").begin_list();
  for (const auto& draw : fitted.draws) {
    json.begin_list();
    for (const double value : draw) json.value(value);
    json.end_list();
  }
  json.end_list().end_object();
  return json.text();
}

LawFunction::LawFunction(const Law& law) : formula_(Formula::parse(law.formula, law.name)) {
  const auto& symbols = formula_.symbols();
  std::vector<bool> known(symbols.size(), false);
  const auto place = [&](const std::string& name) {
    const auto at = static_cast<std::size_t>(std::find(symbols.begin(), symbols.end(), name) - symbols.begin());
    if (at < symbols.size()) known[at] = true;
    return at;
  };
  for (const auto& parameter : law.parameters) of_parameter_.push_back(place(parameter.name));
  for (const auto& variable : law.variables) of_variable_.push_back(place(variable.name));
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (!known[i]) throw core::InputError(fmt::format("{}: found \"{}\" in the formula, expected a variable or parameter", law.name, symbols[i]));
  }
}

std::vector<double> LawFunction::symbols(const std::vector<double>& parameters, const std::vector<double>& variables) const {
  CORE_ASSERT(parameters.size() == of_parameter_.size() && variables.size() == of_variable_.size());
  std::vector<double> values(formula_.symbols().size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (of_parameter_[i] < values.size()) values[of_parameter_[i]] = parameters[i];
  }
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (of_variable_[i] < values.size()) values[of_variable_[i]] = variables[i];
  }
  return values;
}

double LawFunction::value(const std::vector<double>& parameters, const std::vector<double>& variables) const {
  return formula_.value(symbols(parameters, variables));
}

std::vector<std::pair<std::string, double>> LawFunction::bindings(const std::vector<double>& parameters,
                                                                  const std::vector<double>& variables) const {
  const auto values = formula_.binding_values(symbols(parameters, variables));
  std::vector<std::pair<std::string, double>> named;
  for (std::size_t i = 0; i < values.size(); ++i) named.emplace_back(formula_.bindings()[i], values[i]);
  return named;
}

std::vector<double> variables_of(const Law& law, const std::map<std::string, double>& values) {
  std::vector<double> variables;
  std::vector<std::string> known;
  for (const auto& variable : law.variables) {
    known.push_back(variable.name);
    const auto found = values.find(variable.name);
    if (found == values.end() && !variable.otherwise) {
      throw core::InputError(fmt::format("{}: found no --{}, expected {}", law.name, variable.name, variable.meaning));
    }
    variables.push_back(found == values.end() ? *variable.otherwise : found->second);
  }
  for (const auto& [name, value] : values) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw core::InputError(fmt::format("{}: found --{}, expected one of {}", law.name, core::printable(name), fmt::join(known, ", ")));
  }
  return variables;
}

double training_flops(const Law& law, const std::vector<double>& variables) {
  CORE_ASSERT(!law.training_flops.empty());
  const auto formula = Formula::parse(law.training_flops, law.name);
  std::vector<double> values;
  for (const auto& symbol : formula.symbols()) {
    for (std::size_t i = 0; i < law.variables.size(); ++i) {
      if (law.variables[i].name == symbol) values.push_back(variables[i]);
    }
  }
  CORE_ASSERT(values.size() == formula.symbols().size());
  return formula.value(values);
}

}  // namespace fitting

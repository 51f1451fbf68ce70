#include "fitting/solver/reduced.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/io/document.h"

namespace fitting {

Reduced::Reduced(const Law& law, const std::map<std::string, double>& fixed, const std::map<std::string, std::string>& tied)
    : full_(law), law_(law), value_(law.parameters.size()), from_(law.parameters.size(), 0) {
  std::string bindings;
  for (const auto& [name, value] : fixed) {
    value_[place(full_.parameters, name, "--fix")] = value;
    bindings += fmt::format("{} = {:.17g}; ", name, value);
  }
  for (const auto& [name, other] : tied) {
    place(full_.parameters, name, "--tie");
    place(full_.parameters, other, "--tie");
    if (name == other || fixed.count(name) + fixed.count(other) + tied.count(other) != 0) {
      throw core::InputError(fmt::format("--tie: found {}={}, expected both free and different", name, other));
    }
    bindings += fmt::format("{} = {}; ", name, other);
  }
  law_.formula = bindings + law_.formula;
  std::erase_if(law_.parameters, [&](const auto& p) { return fixed.count(p.name) + tied.count(p.name) != 0; });
  if (law_.parameters.empty()) throw core::InputError("--fix: found no parameter left to fit, expected one");
  for (std::size_t j = 0; j < full_.parameters.size(); ++j) {
    const auto& name = full_.parameters[j].name;
    const auto alias = tied.find(name);
    if (!value_[j]) from_[j] = place(law_.parameters, alias == tied.end() ? name : alias->second, "--tie");
  }
}

std::vector<double> Reduced::expand(const std::vector<double>& fitted) const {
  std::vector<double> all;
  for (std::size_t j = 0; j < value_.size(); ++j) all.push_back(value_[j] ? *value_[j] : fitted[from_[j]]);
  return all;
}

std::size_t Reduced::place(const std::vector<Parameter>& parameters, const std::string& name, const std::string& flag) const {
  std::vector<std::string> known;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    if (parameters[j].name == name) return j;
    known.push_back(parameters[j].name);
  }
  throw core::InputError(fmt::format("{}: found \"{}\", expected a parameter of {}: {}", flag, core::printable(name), full_.name, fmt::join(known, " ")));
}

}  // namespace fitting

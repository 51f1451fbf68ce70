#include "fitting/law.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/io/document.h"
#include "fitting/formula.h"

namespace fitting {

const Law& law_of(std::string_view name) {
  std::vector<std::string> known;
  for (const auto* law : laws::all()) {
    if (law->name == name) return *law;
    known.push_back(law->name);
  }
  const auto near = core::nearest_name(name, known);
  throw core::InputError(fmt::format("law: found \"{}\", expected a name of `fit --list`{}",
                                     core::printable(name), near ? fmt::format("; nearest is {}", *near) : ""));
}

Law law_of_formula(const std::string& formula, std::span<const std::string> columns) {
  static const std::array<Variable, 4> usual = {Variable{"N", "parameters"}, Variable{"D", "tokens"},
                                                Variable{"C", "training FLOPs"}, Variable{"U", "unique tokens"}};
  const auto read = Formula::parse(formula, "--formula");
  Law law;
  law.name = "formula";
  law.title = "a formula given on the command line";
  law.source = "the command line";
  law.formula = formula;
  for (const auto& symbol : read.symbols()) {
    const auto known = std::find_if(usual.begin(), usual.end(), [&](const auto& v) { return v.name == symbol; });
    if (known != usual.end()) law.variables.push_back(*known);
    else if (std::find(columns.begin(), columns.end(), symbol) != columns.end()) law.variables.push_back({symbol, "column " + symbol});
    else if (symbol.front() >= 'A' && symbol.front() <= 'Z') law.parameters.push_back({symbol, -20.0, 60.0, {0.0, 6.0, 12.0}, Scale::log});
    else law.parameters.push_back({symbol, -100.0, 100.0, {0.1, 0.4, 1.0}});
  }
  if (law.parameters.empty()) throw core::InputError("--formula: found no name to fit, expected at least one besides the variables");
  if (law.variables.empty()) throw core::InputError("--formula: found no variable, expected N, D, C, U or a column's name");
  if (read.uses("N") && read.uses("D")) law.training_flops = "6 * N * D";
  return law;
}

}  // namespace fitting

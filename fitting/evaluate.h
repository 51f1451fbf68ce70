#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fitting/fitted_law.h"

namespace fitting {

// A law at a point, with what its formula goes through.
struct LawValue {
  FittedLaw law;
  std::vector<double> variables;
  double value = 0.0;
  std::optional<Interval> interval;                       // of the law's draws
  std::vector<std::pair<std::string, double>> bindings;   // intermediate values by the formula's names
  std::optional<double> flops;                            // of training there
  std::vector<std::string> warnings;                      // extrapolation, and what the law itself warns of
};

// Throws InputError for a variable that is missing or unknown, and where the law has no value there.
LawValue evaluate(const FittedLaw& law, const std::map<std::string, double>& values, double confidence);

// Where a point lies outside the runs that the law was fitted on: a line for each variable.
std::vector<std::string> extrapolations(const FittedLaw& law, const std::vector<double>& variables);

std::string evaluation_table(const LawValue& value);
std::string evaluation_json(const LawValue& value, const std::string& version);

}  // namespace fitting

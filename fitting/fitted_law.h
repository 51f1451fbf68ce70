#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fitting/formula.h"
#include "fitting/law.h"

namespace fitting {

struct Interval {
  double low = 0.0, high = 0.0;
};

// A law with its constants: published ones (data/laws), or a fit's.
struct FittedLaw {
  std::string name;    // "chinchilla-epoch", or the file it was read from
  std::string source;  // of the constants
  Law law;
  std::vector<double> parameters;              // in the order of law.parameters, none of them as a logarithm
  std::vector<std::vector<double>> draws;      // other values they may have had: those of a bootstrap
  std::map<std::string, Interval> range;       // of the variables, and of C, of the runs that it was fitted on
  std::string counts;                          // what N counts: total, nonemb or active
  std::vector<std::string> warnings;           // that whoever uses it should know
};

// A set of constants of data/laws by its name (LAW-SET), or the file of a law that `fit --save` wrote (a name with a / or of a
// .json). Throws InputError.
FittedLaw fitted_law(const std::string& name);

// Names of all sets of data/laws, sorted.
std::vector<std::string> fitted_law_names();

// The law as JSON that fitted_law reads back.
std::string fitted_law_json(const FittedLaw& law);

// Evaluates one law at many points. Variables in the order of law.variables.
class LawFunction {
 public:
  // Throws InputError for a formula that uses a name which is neither variable nor parameter.
  explicit LawFunction(const Law& law);
  double value(const std::vector<double>& parameters, const std::vector<double>& variables) const;
  // Intermediate values by the names the formula binds, in its order.
  std::vector<std::pair<std::string, double>> bindings(const std::vector<double>& parameters,
                                                       const std::vector<double>& variables) const;

 private:
  std::vector<double> symbols(const std::vector<double>& parameters, const std::vector<double>& variables) const;

  Formula formula_;
  std::vector<std::size_t> of_parameter_, of_variable_;  // place among the formula's symbols; past its end where unused
};

// The variables of a law from their names. Throws InputError for one that is missing, or that the law does not have.
std::vector<double> variables_of(const Law& law, const std::map<std::string, double>& values);

// Training FLOPs at a point. Requires law.training_flops.
double training_flops(const Law& law, const std::vector<double>& variables);

}  // namespace fitting

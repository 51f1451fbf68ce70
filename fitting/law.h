#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fitting {

// What a law is a function of: a column of the runs, or what a question gives.
struct Variable {
  std::string name;     // the symbol in the formula: N, D, U, C, ...
  std::string meaning;  // with its unit: "parameters, embeddings included"
  std::optional<double> otherwise = {};  // where nobody gives it (bits = 16)
};

// How a parameter is searched and bounded. `log`: its logarithm is what moves, and low, high and starts are of the logarithm.
enum class Scale : std::uint8_t { linear, log };

// What a fit finds.
struct Parameter {
  std::string name;
  double low = 0.0, high = 0.0;   // bounds
  std::vector<double> starts;     // every combination with those of the others is a start
  Scale scale = Scale::linear;
};

// A scaling law: a form, not its constants (those are sets in data/laws/).
struct Law {
  std::string name;     // as given to `fit`: the file's name with - for _
  std::string title;    // what it says, in a line
  std::string source;   // paper and equation
  std::string formula;  // fitting/formula.h
  std::vector<Variable> variables;
  std::vector<Parameter> parameters;
  std::string output = "L";               // symbol of its value
  std::string output_meaning = "nats a token";
  double huber = 1e-3;                     // from which residual of a logarithm a fit of it pulls no harder
  bool setting = false;                    // its value is one that runs choose, as a learning rate: rows are the best choices
  std::string training_flops = {};        // a formula over the variables, linear in D; empty: it has no compute
};

// Throws InputError naming the nearest law for an unknown name.
const Law& law_of(std::string_view name);

// A law of the user's own: what the formula uses of N D C U is a variable, as are `columns`; all other names are parameters,
// started from a few magnitudes. Throws InputError for a formula that does not read, or has no parameter.
Law law_of_formula(const std::string& formula, std::span<const std::string> columns);

namespace laws {
std::span<const Law* const> all();
}

}  // namespace fitting

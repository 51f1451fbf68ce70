#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fitting/optimum/choices.h"
#include "fitting/optimum/optimum.h"

namespace fitting {

// What `fit optimum` prints.
struct OptimumAnswer {
  FittedLaw law;
  OptimumQuestion question;            // that of all rows, but for what varies
  std::string varied;                  // "flops", "loss", "bits", "samples", or a variable of the law
  std::vector<Choice> rows;            // one or more
  std::optional<double> best;          // the value that wins, where rows are alternatives
  std::vector<Detour> others;          // sizes held against the optimum of one budget
  std::string version;

  // Whether any row has an answer.
  bool found() const;
};

// Warnings of all rows, each once.
std::vector<std::string> warnings_of(const OptimumAnswer& answer);

std::string optimum_table(const OptimumAnswer& answer);
std::string optimum_json(const OptimumAnswer& answer);
std::string optimum_csv(const OptimumAnswer& answer);
std::string optimum_markdown(const OptimumAnswer& answer);

}  // namespace fitting

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/logs/observations.h"
#include "fitting/fit.h"

namespace fitting {

// A fit with what it was made of, for people and programs.
struct FitAnswer {
  FitReport fit;
  FitOptions options;
  core::Observations observations;     // rows, dropped ones and how columns were read
  std::vector<std::string> compared;   // with `auto`: a line for each law, best first
  std::optional<double> elapsed_s;     // left out with --reproducible
  std::string version;
};

// Files that hold a fit in each of the formats of the programs (CLI.md, fit).
std::string fit_json(const FitAnswer& answer);
std::string fit_table(const FitAnswer& answer);
std::string fit_markdown(const FitAnswer& answer);
std::string fit_csv(const FitAnswer& answer);  // parameters, a row each

// What is made least, in words: "sum of Huber losses (threshold 0.001) of ln(measured / law)".
std::string objective_kind(const FitReport& fit);

}  // namespace fitting

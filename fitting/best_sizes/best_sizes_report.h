#pragma once

#include <optional>
#include <string>

#include "core/logs/observations.h"
#include "fitting/best_sizes/best_sizes.h"

namespace fitting {

// Best sizes over compute with what they were made of, for people and programs.
struct BestSizesAnswer {
  BestSizes sizes;
  core::Observations observations;   // how columns were read, and what was left out
  std::int64_t seed = 1;
  double confidence = 0.95;
  std::optional<double> elapsed_s;   // left out with --reproducible
  std::string version;
};

// In each of the formats of the programs, as a fit of a law has them (CLI.md, fit), with "points".
std::string best_sizes_json(const BestSizesAnswer& answer);
std::string best_sizes_table(const BestSizesAnswer& answer);
std::string best_sizes_markdown(const BestSizesAnswer& answer);
std::string best_sizes_csv(const BestSizesAnswer& answer);  // parameters, a row each

}  // namespace fitting

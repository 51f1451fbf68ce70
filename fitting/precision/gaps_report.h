#pragma once

#include <string>

#include "fitting/precision/gaps.h"

namespace fitting {

// A gap report as text: groups, rows, laws side by side, and what could not be compared.
std::string gaps_table(const GapReport& report);
std::string gaps_markdown(const GapReport& report);
std::string gaps_csv(const GapReport& report);
std::string gaps_json(const GapReport& report, const std::string& version);

// One predicted gap, a line for each thing that is known of it.
std::string prediction_text(const PredictedGap& gap);

// All recipes and methods with their factors; with N and D also their gaps and the compute that brings them back, with a speed against
// 16 bits whether each would pay.
std::string recipes_text(std::optional<double> N, std::optional<double> D, std::optional<double> speed);

}  // namespace fitting

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/check/check.h"

namespace simulator {

// Largest errors that a check lets pass, as fractions: the median of each source's step times,
// single rows' step times, the median of each source's memory.
struct Bounds {
  std::optional<double> error, row_error, memory_error;
};

// What is over the bounds, one sentence each.
std::vector<std::string> over(const Bounds& bounds, const std::vector<CheckedRow>& rows);

// "10%", "0.1". Throws InputError naming the flag.
double parse_share(const std::string& text, const std::string& flag);

}  // namespace simulator

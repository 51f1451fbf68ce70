#pragma once

#include <cstdint>
#include <string>

namespace simulator {

// Like GPUs are not equally fast: the standard deviation of a kernel's time over them, relative to its mean, from
// data/spread.json.
struct Spread {
  double kernel_sigma = 0.0;
  std::string source;
};
const Spread& spread();

// The expected largest of n standard normal numbers, by Blom's approximation (1958): the quantile (n - 3/8) / (n + 1/4).
// Within 0.03 of the tables for n >= 2 (1.42 for 8, 2.51 for 100, 3.24 for 1,000); 0 for n = 1. Requires n >= 1.
double expected_maximum(std::int64_t n);

// By how much the slowest of n GPUs is slower than the mean. Where all wait for each other, kernels take that long.
double slowest_of(std::int64_t n);

}  // namespace simulator

#pragma once

#include <string>

namespace simulator {

// The interval of a predicted step time, as factors, from data/uncertainty.json.
struct Uncertainty {
  double low = 1.0, high = 1.0;
  std::string source;
};
const Uncertainty& uncertainty();

}  // namespace simulator

#pragma once

#include <string>
#include <utility>
#include <vector>

namespace simulator {

// What a row leaves open and was filled in, and what it says that a prediction cannot express. One
// sentence each.
struct Notes {
  std::vector<std::string> assumed, ignored;

  void assume(std::string what) { assumed.push_back(std::move(what)); }
  void ignore(std::string what) { ignored.push_back(std::move(what)); }
};

}  // namespace simulator

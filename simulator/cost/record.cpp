#include "simulator/cost/record.h"

#include <algorithm>

namespace simulator {

void Recording::add_key(std::string_view key) {
  if (std::find(keys_.begin(), keys_.end(), key) == keys_.end()) keys_.emplace_back(key);
}

}  // namespace simulator

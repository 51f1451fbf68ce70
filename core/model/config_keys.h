#pragma once

#include <span>
#include <string_view>

namespace core {

// Whether a key of a configuration is known to change neither the shape of a model nor the cost of
// training it, so that nobody needs to be told that we do not read it.
bool is_without_cost(std::string_view key);

// A key that makes training dearer or cheaper than we predict, and what we take instead.
struct UnmodelledKey {
  std::string_view key, consequence;
};
std::span<const UnmodelledKey> unmodelled_keys();

}  // namespace core

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/logs/observations.h"

// What tests of run logs read with.
namespace core {

using Strings = std::vector<std::string>;
using Doubles = std::vector<double>;

inline ObservationOptions wanting(Strings wanted) {
  ObservationOptions options;
  options.wanted = std::move(wanted);
  return options;
}

// What an InputError of the work says.
inline std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace core

#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace core {

// The outside world gave us something we cannot use: a file, key or flag, what was found and what was
// expected, in one line. Thrown where the outside is touched, caught once at the top of each command
// (exit status 2).
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A device, driver or library call failed (exit status 3).
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void contract_violated(const char* condition, std::source_location place);

}  // namespace core

// Our own mistake: on in every build type, never caught.
#define CORE_ASSERT(condition)                                                        \
  do {                                                                                \
    if (!(condition)) [[unlikely]] {                                                  \
      ::core::contract_violated(#condition, std::source_location::current());         \
    }                                                                                 \
  } while (false)

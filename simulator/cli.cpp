#include "simulator/cli.h"

#include <cstdio>
#include <exception>

#include "core/error.h"

namespace simulator {

int guarded(const std::string& program, const std::function<int()>& work) {
  try {
    return work();
  } catch (const core::InputError& error) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), error.what());
    return 2;
  } catch (const core::DeviceError& error) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), error.what());
    return 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: internal error: %s\n", program.c_str(), error.what());
    return 3;
  }
}

void warn(const std::string& program, const std::vector<std::string>& warnings, bool quiet) {
  if (quiet) return;
  for (const auto& warning : warnings) std::fprintf(stderr, "%s: warning: %s\n", program.c_str(), warning.c_str());
}

}  // namespace simulator

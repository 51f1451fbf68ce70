#include "simulator/cli.h"

#include <algorithm>
#include <cstdio>
#include <exception>

#include "core/error.h"
#include "core/io/document.h"

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

std::string unknown_argument(const std::vector<std::string>& unexpected, const std::vector<std::string>& known) {
  const auto flag = std::find_if(unexpected.begin(), unexpected.end(), [](const std::string& a) { return a.starts_with("-"); });
  if (flag == unexpected.end()) return core::printable(unexpected.front()) + ": not expected here; --help lists the options";
  const std::string name = flag->substr(0, flag->find('='));
  const auto near = core::nearest_name(name, known);
  return core::printable(name) + ": not known; " + (near ? "did you mean " + *near + "?" : "--help lists the options");
}

}  // namespace simulator

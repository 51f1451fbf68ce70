#include "core/hardware/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io/data_dir.h"

namespace core {

void refuse_family_name(std::string_view kind, std::string_view name, std::string_view flag) {
  const std::vector<std::string> names = data_names(kind);
  if (name.empty() || std::ranges::find(names, name) != names.end()) return;
  std::vector<std::string> family;
  for (const std::string& candidate : names) {
    if (candidate.starts_with(std::string(name) + "-")) family.push_back(candidate);
  }
  if (family.empty()) return;
  throw InputError(fmt::format(
      "{} {}: names more than one part; choose {}", flag, name, fmt::join(family, ", ")));
}

}  // namespace core

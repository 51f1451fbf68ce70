#include "profiler/database.h"

#include <cstdlib>

#include "core/error.h"

namespace profiler {

std::filesystem::path database_file() {
  if (const char* file = std::getenv("FORETRAIN_DB"); file != nullptr && *file != '\0') return file;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') throw core::InputError("FORETRAIN_DB: not set, and no HOME to keep profiles.sqlite in");
  return std::filesystem::path(home) / ".local" / "share" / "foretrain" / "profiles.sqlite";
}

}  // namespace profiler

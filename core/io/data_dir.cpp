#include "core/io/data_dir.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "core/error.h"
#include "core/io/document.h"

namespace core {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_listed = 40;

// <prefix>/share/foretrain/data of the program <prefix>/bin/NAME.
std::optional<fs::path> installed_data() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (failed) {
    return std::nullopt;
  }
  return program.parent_path().parent_path() / "share" / "foretrain" / "data";
}

bool is_folder(const fs::path& path) {
  std::error_code failed;
  return fs::is_directory(path, failed);
}

fs::path find_data_dir() {
  if (const char* given = std::getenv("FORETRAIN_DATA"); given != nullptr && *given != '\0') {
    if (!is_folder(given)) {
      throw InputError(
          fmt::format("FORETRAIN_DATA: expected a folder, found \"{}\"", printable(given, 300)));
    }
    return given;
  }
  const std::optional<fs::path> installed = installed_data();
  if (installed && is_folder(*installed)) {
    return *installed;
  }
  if (is_folder(FORETRAIN_SOURCE_DATA)) {
    return FORETRAIN_SOURCE_DATA;
  }
  throw InputError(fmt::format("no data folder: neither {} nor {} exists; set FORETRAIN_DATA",
                               installed ? installed->string() : "share/foretrain/data",
                               FORETRAIN_SOURCE_DATA));
}

std::string suggestion(std::string_view kind,
                       std::string_view name,
                       const std::vector<std::string>& known) {
  if (const auto near = nearest_name(name, known)) {
    return fmt::format("did you mean {}?", *near);
  }
  if (known.empty()) {
    return fmt::format("no {} in {}", kind, data_dir().string());
  }
  const std::size_t listed = std::min(known.size(), most_listed);
  return fmt::format(
      "known: {}{}",
      fmt::join(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(listed), ", "),
      listed < known.size() ? ", ..." : "");
}

}  // namespace

const fs::path& data_dir() {
  static const fs::path dir = find_data_dir();
  return dir;
}

std::vector<std::string> data_names(std::string_view kind) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(data_dir() / kind, failed)) {
    if (entry.path().extension() == ".json") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path data_file(std::string_view kind, std::string_view name, std::string_view flag) {
  const std::vector<std::string> known = data_names(kind);
  if (!std::binary_search(known.begin(), known.end(), name)) {
    throw InputError(
        fmt::format("{} {}: not known; {}", flag, printable(name), suggestion(kind, name, known)));
  }
  return data_dir() / kind / (std::string(name) + ".json");
}

}  // namespace core

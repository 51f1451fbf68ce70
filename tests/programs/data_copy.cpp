#include "tests/programs/data_copy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <system_error>

namespace fs = std::filesystem;

namespace {

struct OwnFolder {
  fs::path path = fs::path(testing::TempDir()) / ("foretrain-test-" + std::to_string(::getpid()));
  OwnFolder() { fs::create_directories(path); }
  ~OwnFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

const fs::path& own_folder() {
  static const OwnFolder folder;
  return folder.path;
}

fs::path copy_of_data(const std::string& name) {
  const auto copy = own_folder() / name;
  fs::copy(FORETRAIN_SOURCE_DIR "/data", copy, fs::copy_options::recursive);
  return copy;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

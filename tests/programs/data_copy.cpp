#include "tests/programs/data_copy.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace fs = std::filesystem;

fs::path copy_of_data(const std::string& name) {
  const auto copy = fs::path(testing::TempDir()) / name;
  fs::remove_all(copy);
  fs::copy(FORETRAIN_SOURCE_DIR "/data", copy, fs::copy_options::recursive);
  return copy;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

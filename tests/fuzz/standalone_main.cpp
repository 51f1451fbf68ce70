// Feeds files, or all files of folders, to a fuzz target; stands in for libFuzzer where it is
// absent.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

int feed(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::fprintf(stderr, "%s\n", file.c_str());
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return 1;
}

int feed_all(const fs::path& path) {
  if (!fs::is_directory(path)) {
    return feed(path);
  }
  int files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    files += entry.is_regular_file() ? feed(entry.path()) : 0;
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    files += feed_all(argv[i]);
  }
  std::printf("%d inputs\n", files);
  return files > 0 ? 0 : 1;
}

#include "tests/programs/run_program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace {

namespace fs = std::filesystem;

// A file with a name of its own, removed at the end.
class TemporaryFile {
 public:
  TemporaryFile() : path_((fs::temp_directory_path() / "foretrain-test-XXXXXX").string()) {
    const int file = ::mkstemp(path_.data());
    if (file < 0) {
      throw std::runtime_error("cannot write " + path_);
    }
    ::close(file);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string content() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

 private:
  std::string path_;
};

}  // namespace

Answer run_program(const std::string& line, const std::string& environment) {
  const TemporaryFile out, err;
  const std::string command = environment + " " FORETRAIN_BIN_DIR "/" + line + " </dev/null >" +
                              out.path() + " 2>" + err.path();
  const int status = std::system(command.c_str());
  if (status == -1) {
    throw std::runtime_error("cannot run " + command);
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          out.content(),
          err.content()};
}

int lines_of(const std::string& text) {
  const auto ends = std::count(text.begin(), text.end(), '\n');
  return static_cast<int>(ends) + (text.empty() || text.back() == '\n' ? 0 : 1);
}

void expect_refused(const std::string& line,
                    const std::vector<std::string>& words,
                    const std::string& environment) {
  const Answer answer = run_program(line, environment);
  EXPECT_EQ(answer.status, 2) << line;
  EXPECT_EQ(answer.out, "") << line;
  EXPECT_EQ(lines_of(answer.err), 1) << line << "\n" << answer.err;
  for (const std::string& word : words) {
    EXPECT_NE(answer.err.find(word), std::string::npos) << line << "\n"
                                                        << answer.err << "lacks " << word;
  }
}

// Holds the sources to the table of folders (README.md): who may include whom, and which library
// appears where. The include paths of the build enforce the first part for our own folders;
// libraries of the system are visible everywhere, so that only this test keeps them in their
// places.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

// Our folders, and those that each may include. A trailing '-' means: in .cpp files only (a private
// dependency).
const std::map<std::string, std::vector<std::string>, std::less<>> our_folders{
    {"core", {}},
    {"kernels", {"core"}},
    {"profiler", {"core", "kernels-"}},
    {"simulator", {"core"}},
    {"fitting", {"core"}},
    {"planner", {"core", "simulator", "fitting-"}},
    {"gui", {"core", "simulator", "planner", "fitting", "profiler"}},
    {"tests", {"core", "kernels", "profiler", "simulator", "fitting", "planner", "gui", "tests"}},
};

// Libraries by how their headers begin, and where those may stand: the beginnings of paths. In .cpp
// files only: such a header stays out of ours.
const std::map<std::string, std::vector<std::string>, std::less<>> private_libraries{
    {"nlohmann/", {"core/io/document_json.cpp"}},
    {"yaml-cpp/", {"core/io/document_yaml.cpp"}},
    {"toml++/", {"core/io/document_toml.cpp"}},
    {"zlib.h", {"core/io/"}},
    {"SQLiteCpp/", {"core/io/", "profiler/"}},
    {"sqlite3.h", {"core/io/", "profiler/"}},
    {"boost/graph/", {"core/hardware/topology.cpp"}},
    {"boost/math/", {"simulator/spread.cpp", "fitting/two_level.cpp"}},
    {"spdlog/", {"core/", "kernels/", "profiler/", "simulator/", "fitting/", "planner/"}},
    {"tbb/", {"planner/", "fitting/"}},
    {"oneapi/tbb", {"planner/", "fitting/"}},
    {"ceres/", {"fitting/"}},
    {"Eigen/", {"fitting/"}},
    {"mpi.h", {"kernels/", "planner/main.cpp", "profiler/main.cpp"}},
    {"nccl.h", {"kernels/"}},
    {"cublas", {"kernels/"}},
    {"cudnn", {"kernels/"}},
    {"dnnl", {"kernels/"}},
    {"oneapi/dnnl/", {"kernels/"}},
    {"cuda", {"kernels/", "profiler/"}},
    {"cupti", {"profiler/"}},
    {"gtest/", {"tests/"}},
    {"gmock/", {"tests/"}},
    {"benchmark/", {"tests/bench/"}},
    // The system's, in any .cpp file.
    {"malloc.h", {""}},
    {"unistd.h", {""}},
    {"fcntl.h", {""}},
    {"signal.h", {""}},
    {"sys/", {""}},
};

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool is_header(std::string_view path) { return ends_with(path, ".h") || ends_with(path, ".cuh"); }

bool is_source(std::string_view path) { return ends_with(path, ".cpp") || ends_with(path, ".cu"); }

bool is_main(std::string_view path) {
  return ends_with(path, "/main.cpp") || ends_with(path, "_main.cpp");
}

std::string first_folder(std::string_view path) {
  return std::string(path.substr(0, path.find('/')));
}

// Why a file may not include one of our headers, or "".
std::string why_not_ours(std::string_view path, std::string_view header) {
  if (header.find("../") != std::string_view::npos) {
    return "goes upwards; expected the full path from a module";
  }
  const std::string to = first_folder(header);
  if (header.find('/') == std::string_view::npos || !our_folders.contains(to)) {
    return "expected a path that begins with one of our folders";
  }
  const std::string from = first_folder(path);
  if (from == to || (is_main(path) && to != "tests")) {
    return "";
  }
  const auto& allowed = our_folders.at(from);
  const bool listed = std::find(allowed.begin(), allowed.end(), to) != allowed.end();
  const bool listed_private = std::find(allowed.begin(), allowed.end(), to + "-") != allowed.end();
  if (listed || (listed_private && is_source(path))) {
    return "";
  }
  return from + (listed_private ? " may use it in .cpp files only" : " may not use " + to);
}

// Why a file may not include a header of a library, or "".
std::string why_not_library(std::string_view path, std::string_view header) {
  static const std::regex standard("[a-z_0-9]+");  // <vector>, <cstdint>
  if (std::regex_match(header.begin(), header.end(), standard) || header.starts_with("fmt/")) {
    return "";
  }
  if (header.starts_with("CLI/")) {
    return is_main(path) ? "" : "CLI11 appears in main.cpp files only";
  }
  const std::string from = first_folder(path);
  if (header.starts_with("Q")) {
    return from == "gui" ? "" : "Qt appears in gui only";
  }
  // The longest beginning decides: boost/graph/ before boost/.
  const std::vector<std::string>* places = nullptr;
  std::size_t longest = 0;
  for (const auto& [beginning, where] : private_libraries) {
    if (header.starts_with(beginning) && beginning.size() > longest) {
      places = &where;
      longest = beginning.size();
    }
  }
  if (places == nullptr) {
    return "not in the table of libraries";
  }
  const bool placed = std::any_of(places->begin(), places->end(), [&](const std::string& place) {
    return path.starts_with(place);
  });
  if (!placed) {
    return "this library may not be used here";
  }
  return is_header(path) && from != "tests" ? "expected in a .cpp file, found in a header" : "";
}

// Everything that a file does against the table, "path:line: #include ...: reason".
std::vector<std::string> complaints(const std::string& path, const std::string& content) {
  static const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
  std::vector<std::string> out;
  bool once = false;
  std::istringstream lines(content);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    once = once || line == "#pragma once";
    std::smatch match;
    if (!std::regex_match(line, match, include)) {
      continue;
    }
    const std::string header = match[2];
    const std::string why =
        match[1] == "<" ? why_not_library(path, header) : why_not_ours(path, header);
    if (!why.empty()) {
      out.push_back(path + ":" + std::to_string(number) + ": #include " + header + ": " + why);
    }
  }
  if (is_header(path) && !once) {
    out.push_back(path + ": no #pragma once");
  }
  return out;
}

bool breaks(const std::string& path, const std::string& content) {
  return !complaints(path, content).empty();
}

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(Layers, SourcesKeepTheTable) {
  const fs::path root = FORETRAIN_SOURCE_DIR;
  int files = 0;
  for (const auto& [folder, allowed] : our_folders) {
    if (!fs::is_directory(root / folder)) {
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string path = fs::relative(entry.path(), root).generic_string();
      if (!is_header(path) && !is_source(path)) {
        continue;
      }
      ++files;
      for (const std::string& complaint : complaints(path, read(entry.path()))) {
        ADD_FAILURE() << complaint;
      }
    }
  }
  EXPECT_GT(files, 100) << "the sources were not found";
}

// The rules themselves, on made-up files.

TEST(Layers, RefusesUpwardAndBareIncludes) {
  EXPECT_TRUE(breaks("core/io/a.cpp", "#include \"../units.h\"\n"));
  EXPECT_TRUE(breaks("core/io/a.cpp", "#include \"core/../core/units.h\"\n"));
  EXPECT_TRUE(breaks("core/io/a.cpp", "#include \"units.h\"\n"));
  EXPECT_TRUE(breaks("core/io/a.cpp", "  #  include \"io/document.h\"  // why\n"));
  EXPECT_FALSE(breaks("core/io/a.cpp", "#include \"core/units.h\"\n"));
}

TEST(Layers, RefusesFoldersOutsideTheTable) {
  EXPECT_TRUE(breaks("core/a.cpp", "#include \"simulator/step.h\"\n"));
  EXPECT_TRUE(breaks("core/a.cpp", "#include \"planner/search.h\"\n"));
  EXPECT_TRUE(breaks("simulator/a.cpp", "#include \"planner/search.h\"\n"));
  EXPECT_TRUE(breaks("fitting/a.cpp", "#include \"simulator/step.h\"\n"));
  EXPECT_TRUE(breaks("kernels/a.cpp", "#include \"profiler/a.h\"\n"));
  EXPECT_TRUE(breaks("planner/a.cpp", "#include \"tests/a.h\"\n"));
  EXPECT_FALSE(breaks("simulator/a.cpp", "#include \"core/units.h\"\n"));
  EXPECT_FALSE(breaks("planner/a.cpp", "#include \"simulator/step.h\"\n"));
  EXPECT_FALSE(breaks("tests/planner/a_test.cpp", "#include \"planner/search.h\"\n"));
}

TEST(Layers, KeepsPrivateFoldersOutOfHeaders) {
  EXPECT_FALSE(breaks("planner/a.cpp", "#include \"fitting/law.h\"\n"));
  EXPECT_TRUE(breaks("planner/a.h", "#pragma once\n#include \"fitting/law.h\"\n"));
}

TEST(Layers, LetsMainUseAnyLibraryOfOurs) {
  EXPECT_FALSE(
      breaks("simulator/main.cpp", "#include \"planner/search.h\"\n#include <CLI/CLI.hpp>\n"));
  EXPECT_TRUE(breaks("simulator/main.cpp", "#include \"tests/a.h\"\n"));
  EXPECT_TRUE(breaks("simulator/cli.cpp", "#include <CLI/CLI.hpp>\n"));
}

TEST(Layers, KeepsLibrariesInTheirPlaces) {
  EXPECT_FALSE(breaks("core/io/document_json.cpp", "#include <nlohmann/json.hpp>\n"));
  EXPECT_TRUE(breaks("core/io/document.cpp", "#include <nlohmann/json.hpp>\n"));
  EXPECT_FALSE(breaks("core/hardware/topology.cpp", "#include <boost/graph/adjacency_list.hpp>\n"));
  EXPECT_TRUE(breaks("core/hardware/topology.h",
                     "#pragma once\n#include <boost/graph/adjacency_list.hpp>\n"));
  EXPECT_TRUE(breaks("core/hardware/topology.cpp", "#include <boost/asio.hpp>\n"));
  EXPECT_FALSE(breaks("planner/search.cpp", "#include <tbb/parallel_for.h>\n"));
  EXPECT_TRUE(breaks("planner/search.h", "#pragma once\n#include <tbb/parallel_for.h>\n"));
  EXPECT_TRUE(breaks("simulator/step.cpp", "#include <tbb/parallel_for.h>\n"));
  EXPECT_FALSE(breaks("tests/core/a_test.cpp", "#include <gtest/gtest.h>\n"));
  EXPECT_TRUE(breaks("core/a.cpp", "#include <gtest/gtest.h>\n"));
  EXPECT_TRUE(breaks("planner/a.cpp", "#include <QWidget>\n"));
  EXPECT_TRUE(breaks("core/a.cpp", "#include <unheard_of/library.h>\n"));
  EXPECT_FALSE(breaks("core/a.h", "#pragma once\n#include <vector>\n#include <fmt/format.h>\n"));
}

TEST(Layers, AsksHeadersForPragmaOnce) {
  EXPECT_TRUE(breaks("core/a.h", "#include <vector>\n"));
  EXPECT_TRUE(breaks("core/a.h", "// #pragma once\n"));
  EXPECT_FALSE(breaks("core/a.h", "// What a is.\n#pragma once\n"));
  EXPECT_FALSE(breaks("core/a.cpp", "int a;\n"));
}

}  // namespace

#include "profiler/calibrations.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/error.h"
#include "profiler/database.h"

namespace {

namespace fs = std::filesystem;

// A file in a folder of its own, neither of which is there.
fs::path fresh_file(const std::string& name) {
  const auto folder = fs::path(testing::TempDir()) / ("profiler_" + name);
  fs::remove_all(folder);
  return folder / "deep" / "profiles.sqlite";
}

profiler::KeptCalibration made(const std::string& gpu, double factor) {
  profiler::KeptCalibration c;
  c.key = {gpu, "megatron", "my-cluster"};
  c.version = "0.1.0";
  c.kernels = factor, c.communication = 1.1 * factor, c.host = 0.9 * factor;
  c.runs = {{"first", gpu, "Megatron-Core", false, true, 1.25, 1.0}, {"second", gpu, "it's", true, false, 2.0, 1.9}};
  return c;
}

TEST(Calibrations, ComeBackAsTheyWereKept) {
  const auto file = fresh_file("back");
  const auto a = made("h100-sxm", 1.1), b = made("a100-sxm-80", 0.97);
  profiler::keep(a, file);
  profiler::keep(b, file);
  EXPECT_EQ(profiler::kept(a.key, file), a);
  EXPECT_EQ(profiler::all_kept(file), (std::vector{b, a}));  // by system
}

TEST(Calibrations, ReplaceTheOneOfTheSameSystem) {
  const auto file = fresh_file("replace");
  profiler::keep(made("h100-sxm", 1.1), file);
  auto other = made("h100-sxm", 1.3);
  other.runs.pop_back();
  profiler::keep(other, file);
  EXPECT_EQ(profiler::all_kept(file), std::vector{other});
}

TEST(Calibrations, AreNoneForAnotherSystemOrWithoutAFile) {
  const auto file = fresh_file("none");
  EXPECT_FALSE(profiler::kept({"h100-sxm", "megatron", ""}, file));
  EXPECT_FALSE(fs::exists(file));
  profiler::keep(made("h100-sxm", 1.1), file);
  EXPECT_FALSE(profiler::kept({"h100-sxm", "megatron", ""}, file));
  EXPECT_FALSE(profiler::kept({"h100-sxm", "fsdp", "my-cluster"}, file));
}

TEST(Calibrations, GiveTheSameBytesForTheSameCalls) {
  const auto bytes = [](const std::string& name) {
    const auto file = fresh_file(name);
    profiler::keep(made("h100-sxm", 1.1), file);
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(bytes("one"), bytes("two"));
}

TEST(Calibrations, NameAFileThatIsNoDatabase) {
  const auto file = fresh_file("text");
  fs::create_directories(file.parent_path());
  std::ofstream(file) << std::string(4096, 'x');
  for (const auto& work : {+[](const fs::path& f) { profiler::all_kept(f); },
                           +[](const fs::path& f) { profiler::keep(made("h100-sxm", 1.0), f); }}) {
    try {
      work(file);
      ADD_FAILURE() << "no complaint";
    } catch (const core::InputError& error) {
      EXPECT_NE(std::string(error.what()).find(file.string()), std::string::npos) << error.what();
    }
  }
}

TEST(Database, IsWhereTheEnvironmentSays) {
  setenv("FORETRAIN_DB", "/somewhere/mine.sqlite", 1);
  EXPECT_EQ(profiler::database_file(), "/somewhere/mine.sqlite");
  unsetenv("FORETRAIN_DB");
  setenv("HOME", "/elsewhere", 1);
  EXPECT_EQ(profiler::database_file(), "/elsewhere/.local/share/foretrain/profiles.sqlite");
}

}  // namespace

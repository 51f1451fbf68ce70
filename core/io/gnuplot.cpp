#include "core/io/gnuplot.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace core {

namespace {

// Of one size and font, so that pictures look alike. No date and no random names get into them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> terminals = {
    {{".svg", "svg size 900,640 font 'Helvetica,14' background 'white'"},
     {".png", "pngcairo size 900,640 font 'Helvetica,11'"},
     {".pdf", "pdfcairo size 9,6.4 font 'Helvetica,12'"},
     {".gp", ""}}};

constexpr int not_found = 127;  // by POSIX, of a shell

}  // namespace

std::string gnuplot_terminal(const std::filesystem::path& file, const std::string& flag) {
  const auto suffix = file.extension().string();
  for (const auto& [known, terminal] : terminals) {
    if (suffix == known) return std::string(terminal);
  }
  throw InputError(fmt::format("{} {}: expected a file that ends in .svg, .png, .pdf or .gp", flag, file.string()));
}

std::string gnuplot_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

void run_gnuplot(const std::string& script, const std::string& flag) {
  // Through a shell, which says by its status that there is no gnuplot.
  auto* pipe = ::popen("gnuplot 2>/dev/null", "w");
  if (pipe == nullptr) throw InputError(fmt::format("{}: gnuplot cannot be started", flag));
  // Where there is none the shell may be gone before all is written, which must not end this process.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  std::fwrite(script.data(), 1, script.size(), pipe);
  const int status = ::pclose(pipe);
  std::signal(SIGPIPE, before);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == not_found)
    throw InputError(
        fmt::format("{}: there is no gnuplot here to draw it (Debian: gnuplot-nox); a file that ends in .gp needs none", flag));
  if (code != 0) throw InputError(fmt::format("{}: gnuplot failed with status {}", flag, code));
}

}  // namespace core

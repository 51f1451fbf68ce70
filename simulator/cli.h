#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"

namespace simulator {

// What every program does around its work: runs `work`, prints one line for what went wrong, and gives the exit status of
// CLI.md (2 bad input, 3 internal or device failure).
int guarded(const std::string& program, const std::function<int()>& work);

// Warnings to stderr, unless --quiet.
void warn(const std::string& program, const std::vector<std::string>& warnings, bool quiet);

// The complaint about arguments that no option took, by the first flag among them: "--fromat: not known; did you mean
// --format?". `known` are the program's flags.
std::string unknown_argument(const std::vector<std::string>& unexpected, const std::vector<std::string>& known);

// Parses a program's arguments: the exit status where that is all (--help, --version), InputError where they are wrong. For
// mains, which alone know CLI11: its application and errors.
template <typename Extras, typename ParseError, typename App>
std::optional<int> parse(App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const Extras&) {
    std::vector<std::string> flags;
    const auto add_flags = [&flags](const auto& of) {
      for (const auto* option : of.get_options()) {
        for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
      }
    };
    add_flags(app);
    for (const auto* subcommand : app.get_subcommands()) add_flags(*subcommand);
    throw core::InputError(unknown_argument(app.remaining(true), flags));
  } catch (const ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    throw core::InputError(error.what());
  }
  return std::nullopt;
}

}  // namespace simulator

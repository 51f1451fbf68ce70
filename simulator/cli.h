#pragma once

#include <functional>
#include <string>
#include <vector>

namespace simulator {

// What every program does around its work: runs `work`, prints one line for what went wrong, and gives the exit status of
// CLI.md (2 bad input, 3 internal or device failure).
int guarded(const std::string& program, const std::function<int()>& work);

// Warnings to stderr, unless --quiet.
void warn(const std::string& program, const std::vector<std::string>& warnings, bool quiet);

// The complaint about arguments that no option took, by the first flag among them: "--fromat: not known; did you mean
// --format?". `known` are the program's flags.
std::string unknown_argument(const std::vector<std::string>& unexpected, const std::vector<std::string>& known);

}  // namespace simulator

#pragma once

#include <filesystem>
#include <string>

namespace core {

// What a file's suffix asks of gnuplot: .svg, .png or .pdf a picture, .gp the script itself (no terminal). Throws InputError
// naming the flag for another suffix.
std::string gnuplot_terminal(const std::filesystem::path& file, const std::string& flag);

// A text as a string of gnuplot, in single quotes.
std::string gnuplot_quoted(const std::string& text);

// Runs a script by the gnuplot of PATH. Throws InputError naming the flag where there is none or it fails.
void run_gnuplot(const std::string& script, const std::string& flag);

}  // namespace core

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "simulator/check/check.h"

namespace simulator {

// Predicted against measured step times, both axes logarithmic, a colour and mark a source, with lines at 10 % either way: a
// script of gnuplot with its data in it. `terminal` is gnuplot's for the picture and `picture` where it goes; without them
// (both "") the script shows a window.
std::string plot_script(const std::vector<CheckedRow>& rows, const std::string& terminal, const std::string& picture);

// Draws it: .svg, .png and .pdf by gnuplot, .gp is the script itself. Throws InputError naming the flag for another suffix,
// rows without times, a file that cannot be written, or where there is no gnuplot.
void plot_check(const std::vector<CheckedRow>& rows, const std::filesystem::path& file);

}  // namespace simulator

#pragma once

#include "fitting/plots/plot.h"

namespace fitting {

// The kinds of law_figure, each in its file.
Figure loss_figure(const LawPicture& picture);
Figure isoflop_figure(const LawPicture& picture, const std::string& flag);
Figure contour_figure(const LawPicture& picture);
Figure residual_figure(const LawPicture& picture);

// The law's variables of a row.
std::vector<double> point_of(const LawPicture& picture, std::size_t row);
// Training FLOPs of rows; requires that the law has some.
std::vector<double> compute_of(const LawPicture& picture);
// What rows lie over where a picture's x is not compute: training FLOPs, else the first variable; its name to label it.
struct Abscissa {
  std::string label;
  std::vector<double> values;
};
Abscissa abscissa_of(const LawPicture& picture);
// The variable of a name; null where the law has none.
const std::vector<double>* column_of(const LawPicture& picture, std::string_view name);
// Law, constants and runs, in lines.
std::vector<std::string> title_of(const LawPicture& picture);
// A loss with its unit.
std::string output_label(const Law& law);
// A column's values to 3 %, sorted: sizes that runs share.
std::vector<double> distinct(std::vector<double> values);

}  // namespace fitting

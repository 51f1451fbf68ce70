#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fitting {

enum class AxisScale : std::uint8_t { linear, log };

struct Axis {
  std::string label;
  double low = 0.0, high = 0.0;  // low < high; positive where the scale is log
  AxisScale scale = AxisScale::linear;
};

// Points of a figure: rows of x, y and what more a style takes (a colour, bounds of a band). An empty row ends a line.
using Points = std::vector<std::vector<double>>;

// One figure as a script of gnuplot that holds its data.
class Figure {
 public:
  void title(const std::vector<std::string>& lines) { title_ = lines; }
  void x(Axis axis) { x_ = std::move(axis); }
  void y(Axis axis) { y_ = std::move(axis); }
  // The scale of colours, drawn beside the figure.
  void colours(Axis axis) { colours_ = std::move(axis); }
  // Points in a style of gnuplot, such as "using 1:2:3 with lines lc palette". A name puts them into the legend below.
  void add(const Points& points, const std::string& style, const std::string& name = "");
  // A line of gnuplot before the plot: a label, an arrow.
  void command(const std::string& line) { commands_ += line + "\n"; }

  // The script; `terminal` and `picture` as core::gnuplot_terminal gives them, both empty for one that shows a window.
  std::string script(const std::string& terminal, const std::string& picture) const;

 private:
  std::string data_, series_, commands_;
  std::vector<std::string> title_;
  Axis x_, y_;
  std::optional<Axis> colours_;
  int blocks_ = 0;
};

// A text of a title in lines of at most `width` characters, broken at blanks.
std::vector<std::string> wrapped(const std::string& text, std::size_t width);

// The ends of positive values, widened by a share of their ratio; of any values, by a share of their difference.
Axis log_axis(std::string label, const std::vector<double>& values, double margin = 0.05);
Axis linear_axis(std::string label, const std::vector<double>& values, double margin = 0.05);
// Logarithmic where all values are positive, else linear.
Axis axis_of(std::string label, const std::vector<double>& values);
// `count` values along an axis, evenly in its scale.
std::vector<double> along(const Axis& axis, std::size_t count);

// Files that a flag names, "a.png,b.gp" or one by one. Throws InputError for a suffix that gnuplot is not asked for.
std::vector<std::filesystem::path> plot_files(const std::vector<std::string>& texts, const std::string& flag);

// Draws by gnuplot, or writes the script (.gp). Throws InputError naming the flag where the file cannot be written or there is
// no gnuplot.
void draw(const Figure& figure, const std::filesystem::path& file, const std::string& flag);

}  // namespace fitting

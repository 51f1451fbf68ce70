#include "simulator/check/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/io/gnuplot.h"

namespace simulator {

namespace {

const std::string flag = "--plot";

// Measured and predicted seconds.
using Points = std::vector<std::pair<double, double>>;

std::map<std::string, Points> points_of(const std::vector<CheckedRow>& rows) {
  std::map<std::string, Points> points;
  for (const auto& row : rows) {
    if (row.step_time_error && row.measured && row.measured->step_time_s)
      points[row.source].emplace_back(*row.measured->step_time_s, row.predicted->step_time_s);
  }
  return points;
}

// gnuplot reads a source's points from a block of data.
std::string data_of(const std::map<std::string, Points>& points) {
  std::string text;
  std::size_t index = 0;
  for (const auto& [source, of_source] : points) {
    text += fmt::format("$points{} << EOD\n", index++);
    for (const auto& [measured, predicted] : of_source) text += fmt::format("{:.6g} {:.6g}\n", measured, predicted);
    text += "EOD\n";
  }
  return text;
}

// Both axes alike, from a round number below all points to one above.
std::pair<double, double> range_of(const std::map<std::string, Points>& points) {
  double low = 1e300, high = 0.0;
  for (const auto& [source, of_source] : points) {
    for (const auto& [measured, predicted] : of_source) {
      low = std::min({low, measured, predicted});
      high = std::max({high, measured, predicted});
    }
  }
  return {0.7 * low, 1.4 * high};
}

// Colours of Okabe and Ito, which colour-blind readers tell apart; marks change when they come round.
std::string style_of(std::size_t index) {
  constexpr std::array colours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"};
  constexpr std::array marks = {7, 5, 9};  // disc, square, triangle, filled
  return fmt::format("pt {} ps 0.6 lc rgb '{}'",
                     marks[index / colours.size() % marks.size()],
                     colours[index % colours.size()]);
}

std::string lines_of(const std::map<std::string, Points>& points) {
  std::string text = "plot x lw 1.5 lc rgb '#606060' title 'as measured', \\\n"
                     "  1.1 * x lw 1 dt 2 lc rgb '#909090' title '10 % either way', \\\n"
                     "  x / 1.1 lw 1 dt 2 lc rgb '#909090' notitle";
  std::size_t index = 0;
  for (const auto& [source, of_source] : points) {
    text += fmt::format(", \\\n  $points{} using 1:2 with points {} title {}",
                        index,
                        style_of(index),
                        core::gnuplot_quoted(fmt::format("{} ({})", source, of_source.size())));
    ++index;
  }
  return text + "\n";
}

}  // namespace

std::string plot_script(const std::vector<CheckedRow>& rows, const std::string& terminal, const std::string& picture) {
  const auto points = points_of(rows);
  if (points.empty()) throw core::InputError(flag + ": no row has a measured and a predicted step time");
  const auto [low, high] = range_of(points);
  std::string text;
  if (!terminal.empty())
    text += fmt::format("set terminal {} noenhanced\nset output {}\n", terminal, core::gnuplot_quoted(picture));
  text += fmt::format(
      "set logscale xy\nset xrange [{0:.4g}:{1:.4g}]\nset yrange [{0:.4g}:{1:.4g}]\n"
      "set xlabel 'measured step time, s'\nset ylabel 'predicted step time, s'\n"
      "set grid xtics ytics lc rgb '#e0e0e0'\nset format '%g'\nset size ratio 1\n"
      "set key outside right top Left reverse samplen 1\nset samples 2\n",
      low,
      high);
  return text + data_of(points) + lines_of(points);
}

void plot_check(const std::vector<CheckedRow>& rows, const std::filesystem::path& file) {
  const auto terminal = core::gnuplot_terminal(file, flag);
  const bool draws = !terminal.empty();
  const auto script = plot_script(rows, terminal, draws ? file.string() : "");
  // Also of a picture: that it can be written is found out here.
  std::ofstream out(file, std::ios::binary);
  if (!draws) out << script;
  out.close();
  if (!out) throw core::InputError(fmt::format("{} {}: cannot be written", flag, file.string()));
  if (draws) core::run_gnuplot(script, flag);
}

}  // namespace simulator

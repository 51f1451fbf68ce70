#include "fitting/plots/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>

#include "core/error.h"
#include "core/io/document.h"
#include "core/io/gnuplot.h"

namespace fitting {
namespace {

// Viridis (van der Walt & Smith 2015) without its bright end, which white paper swallows.
constexpr const char* palette =
    "set palette defined (0 '#440154', 1 '#472d7b', 2 '#3b528b', 3 '#2c728e', 4 '#21918c', 5 '#28ae80', 6 '#5ec962', 7 '#a0cf27')\n";

// A number as an axis says it: plain where short, else with a power of ten.
std::string power_label(double value) {
  const int exponent = static_cast<int>(std::floor(std::log10(value) + 1e-9));
  const double digit = value / std::pow(10.0, exponent);
  if (exponent >= -2 && exponent <= 3) return fmt::format("{:g}", value);
  if (std::fabs(digit - 1.0) < 1e-9) return fmt::format("10^{{{}}}", exponent);
  return fmt::format("{:g}×10^{{{}}}", digit, exponent);
}

// Where a logarithmic axis has its labels: whole decades, or enough of their multiples where it spans few.
std::vector<double> log_tics(double low, double high) {
  const double decades = std::log10(high / low);
  static const std::array<std::vector<double>, 4> of_span = {{{1.0}, {1.0, 3.0}, {1.0, 2.0, 5.0}, {1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0}}};
  const auto& digits = of_span[decades > 4.0 ? 0 : decades > 2.5 ? 1 : decades > 0.9 ? 2 : 3];
  const int step = std::max(1, static_cast<int>(std::ceil(decades / 10.0)));
  std::vector<double> tics;
  for (int e = static_cast<int>(std::floor(std::log10(low))); e <= static_cast<int>(std::ceil(std::log10(high))); ++e) {
    if (e % step != 0) continue;
    for (const double digit : digits) {
      const double tic = digit * std::pow(10.0, e);
      if (tic >= low * (1.0 - 1e-12) && tic <= high * (1.0 + 1e-12)) tics.push_back(tic);
    }
  }
  return tics;
}

// Steps of 1, 2 or 5 for few tics: a narrow logarithmic axis has them too.
std::vector<double> even_tics(double low, double high, double count) {
  const double rough = (high - low) / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  const double digit = rough / power < 1.5 ? 1.0 : rough / power < 3.5 ? 2.0 : rough / power < 7.5 ? 5.0 : 10.0;
  std::vector<double> tics;
  for (double k = std::ceil(low / (digit * power) - 1e-9); k * digit * power <= high + 1e-9 * power; ++k) tics.push_back(k * digit * power);
  return tics;
}

std::string axis_text(const std::string& name, const Axis& axis) {
  std::string text = fmt::format("set {}label {}\nset {}range [{:.6g}:{:.6g}]\n", name, core::gnuplot_quoted(axis.label), name, axis.low, axis.high);
  if (axis.scale == AxisScale::linear) return text;
  auto tics = log_tics(axis.low, axis.high);
  if (tics.size() < 4) tics = even_tics(axis.low, axis.high, 6.0);
  text += fmt::format("set logscale {}\nset {}tics (", name, name);
  for (std::size_t i = 0; i < tics.size(); ++i) {
    text += fmt::format("{}{} {:.6g}", i > 0 ? ", " : "", core::gnuplot_quoted(power_label(tics[i])), tics[i]);
  }
  return text + ")\n";
}

// What has its colour from the scale stands grey in the legend: no colour of the scale is that of all.
constexpr std::string_view by_palette = "lc palette";

std::string legend_style(std::string style) {
  style.replace(style.find(by_palette), by_palette.size(), "lc rgb '#606060'");
  return style.substr(style.find("with "));
}

// Cairo writes when it drew, by which two pictures of the same would differ. The same length, so that places in the file hold.
void take_date_away(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  auto pdf = text.str();
  const std::string key = "/CreationDate (D:", none = "20000101000000";
  const auto at = pdf.find(key);
  if (at == std::string::npos || at + key.size() + none.size() > pdf.size()) return;
  pdf.replace(at + key.size(), none.size(), none);
  std::ofstream(file, std::ios::binary) << pdf;
}

}  // namespace

void Figure::add(const Points& points, const std::string& style, const std::string& name) {
  if (points.empty()) return;
  const auto block = fmt::format("$data{}", blocks_++);
  data_ += block + " << EOD\n";
  for (const auto& point : points) {
    for (std::size_t i = 0; i < point.size(); ++i) data_ += fmt::format("{}{:.7g}", i > 0 ? " " : "", point[i]);
    data_ += "\n";
  }
  data_ += "EOD\n";
  const auto title = "title " + core::gnuplot_quoted(name) + " noenhanced";
  const bool grey = !name.empty() && style.find(by_palette) != std::string::npos;
  series_ += fmt::format("{}{} {} {}", series_.empty() ? "plot " : ", \\\n  ", block, style, name.empty() || grey ? "notitle" : title);
  if (grey) series_ += fmt::format(", \\\n  keyentry {} {}", legend_style(style), title);
}

std::string Figure::script(const std::string& terminal, const std::string& picture) const {
  CORE_ASSERT(!series_.empty());
  std::string text = "set encoding utf8\n";
  if (!terminal.empty()) text += fmt::format("set terminal {} enhanced\nset output {}\n", terminal, core::gnuplot_quoted(picture));
  for (std::size_t i = 0; i < title_.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "set title " : " . \"\\n\" . ", core::gnuplot_quoted(core::printable(title_[i], 400)));
  }
  if (!title_.empty()) text += " noenhanced\n";
  text += axis_text("x", x_) + axis_text("y", y_);
  if (colours_) text += palette + axis_text("cb", *colours_) + "set cblabel offset 2.5\nset rmargin at screen 0.83\n";
  text += "set grid xtics ytics lc rgb '#e4e4e4' lt 1\nset border lc rgb '#404040'\nset tics nomirror\n"
          "set bmargin 6\nset key bmargin center horizontal Left reverse samplen 2\n";
  return text + commands_ + data_ + series_ + "\n";
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    auto end = std::min(at + width, text.size());
    if (end < text.size()) {
      const auto blank = text.rfind(' ', end);
      if (blank != std::string::npos && blank > at) end = blank;
    }
    lines.push_back(text.substr(at, end - at));
    at = end + (end < text.size() && text[end] == ' ' ? 1 : 0);
  }
  return lines;
}

Axis log_axis(std::string label, const std::vector<double>& values, double margin) {
  CORE_ASSERT(!values.empty());
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  CORE_ASSERT(*low > 0.0);
  const double wider = std::max(std::pow(*high / *low, margin), 1.02);
  return {std::move(label), *low / wider, *high * wider, AxisScale::log};
}

Axis linear_axis(std::string label, const std::vector<double>& values, double margin) {
  CORE_ASSERT(!values.empty());
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double wider = *high > *low ? margin * (*high - *low) : std::max(std::fabs(*low) * 0.1, 1e-6);
  return {std::move(label), *low - wider, *high + wider, AxisScale::linear};
}

Axis axis_of(std::string label, const std::vector<double>& values) {
  const bool positive = std::all_of(values.begin(), values.end(), [](double v) { return v > 0.0; });
  return positive ? log_axis(std::move(label), values) : linear_axis(std::move(label), values);
}

std::vector<double> along(const Axis& axis, std::size_t count) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(std::max<std::size_t>(count - 1, 1));
    values.push_back(axis.scale == AxisScale::log ? axis.low * std::pow(axis.high / axis.low, share) : axis.low + share * (axis.high - axis.low));
  }
  return values;
}

std::vector<std::filesystem::path> plot_files(const std::vector<std::string>& texts, const std::string& flag) {
  std::vector<std::filesystem::path> files;
  for (const auto& text : texts) {
    for (std::size_t at = 0; at <= text.size();) {
      const auto end = std::min(text.find(',', at), text.size());
      files.emplace_back(text.substr(at, end - at));
      core::gnuplot_terminal(files.back(), flag);
      at = end + 1;
    }
  }
  return files;
}

void draw(const Figure& figure, const std::filesystem::path& file, const std::string& flag) {
  const auto terminal = core::gnuplot_terminal(file, flag);
  const bool draws = !terminal.empty();
  const auto script = figure.script(terminal, draws ? file.string() : "");
  // Also of a picture: that it can be written is found out here.
  std::ofstream out(file, std::ios::binary);
  if (!draws) out << script;
  out.close();
  if (!out) throw core::InputError(fmt::format("{} {}: cannot be written", flag, file.string()));
  if (!draws) return;
  core::run_gnuplot(script, flag);
  if (file.extension() == ".pdf") take_date_away(file);
}

}  // namespace fitting

#include "simulator/check/bounds.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/io/document.h"
#include "simulator/check/summary.h"

namespace simulator {

std::vector<std::string> over(const Bounds& bounds, const std::vector<CheckedRow>& rows) {
  std::vector<std::string> failures;
  const auto hold = [&](const std::string& what,
                        std::string_view figure,
                        double value,
                        const std::optional<double>& most) {
    if (most && value > *most)
      failures.push_back(fmt::format("{}: {} {:.2f} %, at most {:.2f} % asked for",
                                     what,
                                     figure,
                                     100.0 * value,
                                     100.0 * *most));
  };
  for (const auto& row : rows) {
    if (row.step_time_error)
      hold(row.run.id, "step time error", std::abs(*row.step_time_error), bounds.row_error);
  }
  for (const auto& [name, s] : summarise_by(rows, GroupBy::source)) {
    if (s.step_time.n > 0)
      hold("source " + name, "median step time error", s.step_time.median_abs, bounds.error);
    if (s.memory.n > 0)
      hold("source " + name, "median memory error", s.memory.median_abs, bounds.memory_error);
  }
  return failures;
}

double parse_share(const std::string& text, const std::string& flag) {
  const bool percent = text.ends_with('%');
  const char* const end = text.data() + text.size() - (percent ? 1 : 0);
  double value = 0.0;
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || !std::isfinite(value) || value < 0.0) {
    throw core::InputError(fmt::format(
        "{}: found \"{}\", expected a share such as 10% or 0.1", flag, core::printable(text)));
  }
  return percent ? value / 100.0 : value;
}

}  // namespace simulator

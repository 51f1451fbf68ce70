#include "core/logs/run_name.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "core/logs/cell.h"

namespace core {

namespace {

bool separates(char c) {
  return std::string_view("-_ /.:()[],=").find(c) != std::string_view::npos;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A part of a name: "350m", "1.3b" or "1p3b".
std::optional<double> size_of(std::string part) {
  if (part.size() < 2 || part.size() > 12 || !is_digit(part.front())) return std::nullopt;
  const auto factor = size_factor(std::string_view(part).substr(part.size() - 1));
  if (!factor || *factor > 1e9 || part.back() == 'g' || part.back() == 'G') return std::nullopt;
  part.pop_back();
  if (const auto p = part.find('p'); p != std::string::npos) part[p] = '.';
  double value = 0.0;
  const auto read = std::from_chars(part.data(), part.data() + part.size(), value);
  if (read.ec != std::errc() || read.ptr != part.data() + part.size()) return std::nullopt;
  return value > 0.0 ? std::optional(value * *factor) : std::nullopt;
}

}  // namespace

std::optional<double> size_in_name(std::string_view name) {
  std::optional<double> size;
  for (std::size_t at = 0; at < name.size();) {
    auto end = at;
    // A point between digits belongs to its number.
    while (end < name.size() &&
           (!separates(name[end]) || (name[end] == '.' && end > at && is_digit(name[end - 1]) &&
                                      end + 1 < name.size() && is_digit(name[end + 1]))))
      ++end;
    if (const auto found = size_of(std::string(name.substr(at, end - at)))) {
      if (size && *size != *found) return std::nullopt;
      size = found;
    }
    at = end + 1;
  }
  return size;
}

}  // namespace core

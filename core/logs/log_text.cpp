#include "core/logs/log_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/logs/cell.h"

namespace core {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// How long the number is that a text begins with, a size behind it included. A comma belongs to it
// before three digits and no fourth.
std::size_t length_of_number(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    const bool group = c == ',' && at > 0 && is_digit(text[at - 1]) && at + 3 < text.size() &&
                       is_digit(text[at + 1]) && is_digit(text[at + 2]) && is_digit(text[at + 3]) &&
                       !(at + 4 < text.size() && is_digit(text[at + 4]));
    const bool sign =
        (c == '-' || c == '+') && (at == 0 || text[at - 1] == 'e' || text[at - 1] == 'E');
    const bool exponent = (c == 'e' || c == 'E') && at > 0 && at + 1 < text.size() &&
                          (is_digit(text[at + 1]) || text[at + 1] == '-' || text[at + 1] == '+');
    if (!is_digit(c) && c != '.' && !group && !sign && !exponent) break;
    ++at;
  }
  if (text.substr(0, at).find_first_of("0123456789") == std::string_view::npos) return 0;
  const bool size = at > 0 && at < text.size() && size_factor(text.substr(at, 1)) &&
                    (at + 1 == text.size() || !is_letter(text[at + 1]));
  // "12." ends a sentence.
  while (!size && at > 0 && text[at - 1] == '.') --at;
  return at + (size ? 1 : 0);
}

}  // namespace

std::string_view trimmed_line(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::optional<double> number_after(std::string_view line, std::string_view word) {
  const auto at = line.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  const auto rest = trimmed_line(line.substr(at + word.size()));
  double value = 0.0;
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (read.ec != std::errc() || !std::isfinite(value) || value < 0.0) return std::nullopt;
  return value;
}

std::optional<double> value_after(std::string_view line, std::string_view word) {
  const auto at = line.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  auto rest = line.substr(at + word.size());
  const auto begin = rest.find_first_not_of(" \t:='\"");
  if (begin == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(begin);
  if (const auto length = length_of_number(rest)) {
    const auto cell = read_cell(rest.substr(0, length));
    if (cell.kind == Cell::Kind::number) return cell.value;
    return cell.kind == Cell::Kind::no_number ? std::optional(cell.value) : std::nullopt;
  }
  const auto letters =
      std::find_if_not(rest.begin() + (rest.front() == '-' ? 1 : 0), rest.end(), is_letter);
  const auto cell = read_cell(rest.substr(0, static_cast<std::size_t>(letters - rest.begin())));
  return cell.kind == Cell::Kind::no_number ? std::optional(cell.value) : std::nullopt;
}

std::optional<std::pair<std::string_view, std::string_view>> dotted_argument(
    std::string_view line) {
  const auto dots = line.find(" ...");
  if (dots == std::string_view::npos) return std::nullopt;
  auto name = trimmed_line(line.substr(0, dots));
  const auto blank = name.find_last_of(" \t");
  if (blank != std::string_view::npos) name.remove_prefix(blank + 1);
  const auto value = line.find_first_not_of('.', dots + 1);
  if (name.empty() || value == std::string_view::npos || line[value] != ' ') return std::nullopt;
  return std::pair(name, trimmed_line(line.substr(value)));
}

std::string_view without_colours(std::string_view line, std::string& buffer) {
  if (line.find('\x1b') == std::string_view::npos) return line;
  buffer.clear();
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      buffer += line[i];
      continue;
    }
    // ESC [ numbers letter
    if (i + 1 < line.size() && line[i + 1] == '[') ++i;
    while (i + 1 < line.size() && (is_digit(line[i + 1]) || line[i + 1] == ';')) ++i;
    if (i + 1 < line.size() && is_letter(line[i + 1])) ++i;
  }
  return buffer;
}

}  // namespace core

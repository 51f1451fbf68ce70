#include "core/logs/cell.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace core {

namespace {

constexpr std::size_t longest_number = 64;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(
      words.begin(), words.end(), [&](std::string_view word) { return same_word(text, word); });
}

// "1,234,567": groups of three after the first.
bool is_grouped(std::string_view digits, char comma) {
  auto at = digits.find(comma);
  const auto first = digits.find_first_of("0123456789");
  if (at == std::string_view::npos || first >= at || at - first > 3) return false;
  while (at < digits.size() && digits[at] == comma) {
    const auto end = std::min(digits.find_first_not_of("0123456789", at + 1), digits.size());
    if (end - at != 4) return false;
    at = end;
  }
  return digits.find(comma, at) == std::string_view::npos;
}

// The number with a point and nothing between its thousands; empty where its commas make no sense.
std::string plain_digits(std::string_view text, Commas commas) {
  std::string out(text);
  const auto drop = [&](char c) { out.erase(std::remove(out.begin(), out.end(), c), out.end()); };
  drop('_');
  const auto comma = out.rfind(','), point = out.rfind('.');
  if (comma == std::string::npos) {
    if (std::count(out.begin(), out.end(), '.') > 1 && is_grouped(out, '.')) drop('.');
    return out;
  }
  const bool decimal = point != std::string::npos
                           ? comma > point
                           : std::count(out.begin(), out.end(), ',') == 1 &&
                                 (commas == Commas::decimal || !is_grouped(out, ','));
  if (!decimal) {
    if (!is_grouped(out, ',')) return {};
    drop(',');
    return out;
  }
  if (point != std::string::npos && !is_grouped(out.substr(0, comma), '.')) return {};
  drop('.');
  std::replace(out.begin(), out.end(), ',', '.');
  return out;
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<double> size_factor(std::string_view text) {
  if (same_word(text, "K")) return 1e3;
  if (is_one_of(text, {"M", "mn"})) return 1e6;
  if (is_one_of(text, {"B", "G", "bn"})) return 1e9;
  if (same_word(text, "T")) return 1e12;
  return std::nullopt;
}

Cell read_cell(std::string_view text, Commas commas) {
  // What most cells of a long table are.
  if (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    double plain = 0.0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), plain);
    if (read.ec == std::errc() && read.ptr == text.data() + text.size())
      return {Cell::Kind::number, plain};
  }
  text = trimmed(text);
  if (text.empty() || is_one_of(text, {"-", "na", "n/a", "null", "none", "<na>"}))
    return {Cell::Kind::blank, nan};
  if (is_one_of(text, {"nan", "inf", "-inf", "+inf", "infinity", "-infinity", "-nan", "1.#inf"}))
    return {Cell::Kind::no_number, nan};
  if (text.size() > longest_number) return {Cell::Kind::text, nan};
  if (text.front() == '+') text.remove_prefix(1);
  std::string changed;
  if (text.find_first_of(",_") != std::string_view::npos ||
      std::count(text.begin(), text.end(), '.') > 1) {
    changed = plain_digits(text, commas);
    text = changed;
  }
  double value = 0.0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto rest = trimmed(text.substr(static_cast<std::size_t>(read.ptr - text.data())));
  if (read.ec == std::errc::result_out_of_range && rest.empty())
    return {Cell::Kind::no_number, nan};
  if (read.ec != std::errc()) return {Cell::Kind::text, nan};
  if (!rest.empty()) {
    const auto factor = size_factor(rest);
    if (!factor) return {Cell::Kind::text, nan};
    value *= *factor;
  }
  if (!std::isfinite(value)) return {Cell::Kind::no_number, nan};
  return {Cell::Kind::number, value};
}

}  // namespace core

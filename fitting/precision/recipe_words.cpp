#include "fitting/precision/recipe_words.h"

#include <algorithm>
#include <charconv>

namespace fitting {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<double> number_of(std::string_view text) {
  double value = 0.0;
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Words::Words(std::string_view text) {
  std::string word;
  const auto finish = [&] {
    while (!word.empty() && word.back() == '.') word.pop_back();
    if (!word.empty()) words_.push_back(word);
    word.clear();
  };
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') word += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || is_digit(c) || (c == '.' && !word.empty())) word += c;
    else finish();
  }
  finish();
}

std::optional<std::size_t> Words::find(std::string_view phrase) const {
  const Words wanted(phrase);
  const auto at = std::search(words_.begin(), words_.end(), wanted.words_.begin(), wanted.words_.end());
  if (at == words_.end()) return std::nullopt;
  return static_cast<std::size_t>(at - words_.begin());
}

bool Words::has_any(std::initializer_list<std::string_view> phrases) const {
  return std::any_of(phrases.begin(), phrases.end(), [&](auto phrase) { return has(phrase); });
}

std::optional<double> Words::number(std::size_t i) const { return i < size() ? number_of(words_[i]) : std::nullopt; }

std::optional<std::pair<double, double>> Words::shape(std::size_t i) const {
  if (i >= size()) return std::nullopt;
  const std::string_view word = words_[i];
  const auto x = word.find('x');
  if (x == std::string_view::npos) return std::nullopt;
  const auto rows = number_of(word.substr(0, x)), columns = number_of(word.substr(x + 1));
  if (!rows || !columns || *rows < 1.0 || *columns < 1.0) return std::nullopt;
  return std::pair{*rows, *columns};
}

}  // namespace fitting

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace core {

// The pieces of the lines that training frameworks print.

// Without blanks at its ends.
std::string_view trimmed_line(std::string_view text);

// The number right after a word: finite, 0 or more; nothing where none stands there.
std::optional<double> number_after(std::string_view line, std::string_view word);

// The value behind a word as frameworks write it, colons, equals signs, blanks and quotes between
// them: 5,615 and 480B in full, NaN for nan and inf. Nothing where neither stands there.
std::optional<double> value_after(std::string_view line, std::string_view word);

// "  hidden_size ..................... 9216": one word, dots, a value.
std::optional<std::pair<std::string_view, std::string_view>> dotted_argument(std::string_view line);

// A line without the sequences that colour a terminal. `buffer` holds what is returned where there
// are some.
std::string_view without_colours(std::string_view line, std::string& buffer);

template <class Line>
void each_line(std::string_view text, const Line& line) {
  while (!text.empty()) {
    const auto end = text.find('\n') < text.size() ? text.find('\n') : text.size();
    line(text.substr(0, end));
    text.remove_prefix(end < text.size() ? end + 1 : end);
  }
}

}  // namespace core

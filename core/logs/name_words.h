#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace core {

using NameWords = std::vector<std::string>;

// The words of a name: letters in lower case and digits, as "train/Loss (nats)" has train, loss,
// nats.
NameWords words_of(std::string_view name);

// Whether a name is that of a score where more is better (accuracy, exact match, F1), which no law
// of losses takes.
bool is_score(std::string_view column);

// Whether a name has one of some words; the other takes them out, too.
bool has_word(const NameWords& words, std::initializer_list<std::string_view> any);
bool take_words(NameWords& words, std::initializer_list<std::string_view> any);

}  // namespace core

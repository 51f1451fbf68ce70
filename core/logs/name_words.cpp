#include "core/logs/name_words.h"

#include <algorithm>

namespace core {

NameWords words_of(std::string_view name) {
  NameWords words;
  bool open = false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
    if (letter && !open) words.emplace_back();
    if (letter) words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    open = letter;
  }
  return words;
}

bool is_score(std::string_view column) {
  return has_word(words_of(column),
                  {"acc", "accuracy", "f1", "em", "match", "exact", "bleu", "rouge", "auc", "mcc"});
}

bool take_words(NameWords& words, std::initializer_list<std::string_view> any) {
  const auto before = words.size();
  std::erase_if(words, [&](const std::string& word) {
    return std::find(any.begin(), any.end(), word) != any.end();
  });
  return words.size() < before;
}

bool has_word(const NameWords& words, std::initializer_list<std::string_view> any) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(any.begin(), any.end(), word) != any.end();
  });
}

}  // namespace core

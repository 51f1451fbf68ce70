#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fitting {

// A text as words: runs of letters, digits and dots, in lower case. "w=E2M1/16x16" is w, e2m1, 16x16.
class Words {
 public:
  explicit Words(std::string_view text);

  std::size_t size() const { return words_.size(); }
  const std::string& operator[](std::size_t i) const { return words_[i]; }

  // Where the words of a phrase stand one after the other.
  std::optional<std::size_t> find(std::string_view phrase) const;
  bool has(std::string_view phrase) const { return find(phrase).has_value(); }
  bool has_any(std::initializer_list<std::string_view> phrases) const;

  // A word as a number.
  std::optional<double> number(std::size_t i) const;
  // "16x128" as 16 and 128.
  std::optional<std::pair<double, double>> shape(std::size_t i) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace fitting

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/logs/cell.h"

namespace core {

// Watches the columns of a table that no variable is taken from for rows that may not belong into
// one fit: several tokenizers, texts or set-ups, and rows that the table itself marks.
class Mixture {
 public:
  explicit Mixture(const std::vector<std::string>& header) : header_(header) {}

  // A cell of another column, of a row with N parameters (NaN: unknown).
  void add(std::size_t column, std::string_view text, const Cell& cell, double N);
  // A line each: columns of marks with the --where that leaves the marked rows out, then those of
  // texts that differ.
  std::vector<std::string> warnings(const std::string& file) const;

 private:
  struct Column {
    std::map<std::string, double> words;  // -> the N of its rows, NaN where they differ
    std::size_t rows = 0, marked = 0;
    bool numbers = false;  // some cell is one, other than 0 and 1
    std::string unmarked;  // what a cell without a mark holds
    bool is_mark = false;
  };
  bool tells_apart(const Column& column) const;

  const std::vector<std::string>& header_;
  std::map<std::size_t, Column> columns_;
};

}  // namespace core

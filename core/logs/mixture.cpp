#include "core/logs/mixture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/name_words.h"

namespace core {

namespace {

// More kinds than this are names of runs, remarks or times.
constexpr std::size_t most_kinds = 20;
constexpr std::size_t most_shown = 4;

bool says_mark(std::string_view name) {
  return has_word(words_of(name),
                  {"flag", "flagged", "outlier", "exclude", "excluded", "diverged", "invalid"});
}

bool says_yes(std::string_view text, const Cell& cell) {
  if (cell.kind == Cell::Kind::number) return cell.value != 0.0;
  return same_word(text, "true") || same_word(text, "yes") || same_word(text, "y");
}

}  // namespace

void Mixture::add(std::size_t column, std::string_view text, const Cell& cell, double N) {
  const auto [at, is_new] = columns_.try_emplace(column);
  auto& c = at->second;
  if (is_new) c.is_mark = says_mark(header_[column]);
  ++c.rows;
  if (c.is_mark) {
    if (says_yes(text, cell))
      ++c.marked;
    else
      c.unmarked = cell.kind == Cell::Kind::blank ? "" : std::string(text);
    return;
  }
  c.numbers |= cell.kind == Cell::Kind::number;
  if (c.numbers || c.words.size() > most_kinds) return;
  const auto word = cell.kind == Cell::Kind::blank ? std::string() : std::string(text);
  const auto [known, first] = c.words.emplace(word, N);
  if (!first && known->second != N) known->second = std::numeric_limits<double>::quiet_NaN();
}

// Texts of a few kinds, which do not just name the sizes.
bool Mixture::tells_apart(const Column& c) const {
  if (c.is_mark || c.numbers || c.words.size() < 2 || c.words.size() > most_kinds) return false;
  if (c.words.size() * 3 > c.rows) return false;
  return std::any_of(
      c.words.begin(), c.words.end(), [](const auto& word) { return std::isnan(word.second); });
}

std::vector<std::string> Mixture::warnings(const std::string& file) const {
  std::vector<std::string> lines, differing;
  std::string example;
  for (const auto& [place, c] : columns_) {
    const auto name = printable(header_[place], 40);
    if (c.is_mark && c.marked > 0 && c.marked < c.rows) {
      lines.push_back(
          fmt::format("{}: {} marks {} of {} rows, which are fitted too (--where \"{}={}\" leaves "
                      "them out)",
                      file,
                      name,
                      c.marked,
                      c.rows,
                      name,
                      printable(c.unmarked, 20)));
    }
    if (!tells_apart(c)) continue;
    std::vector<std::string> shown;
    for (const auto& [word, N] : c.words) {
      if (shown.size() == most_shown) break;
      shown.push_back(word.empty() ? "blank" : printable(word, 20));
    }
    if (c.words.size() > most_shown) shown.push_back("...");
    differing.push_back(fmt::format("{} ({})", name, fmt::join(shown, ", ")));
    if (example.empty())
      example = fmt::format("{}={}", name, printable(c.words.rbegin()->first, 20));
  }
  if (!differing.empty())
    lines.push_back(fmt::format(
        "{}: rows differ in {} and are fitted as one: losses of other tokenizers, texts or set-ups "
        "do not mix (--where \"{}\" takes some)",
        file,
        fmt::join(differing, ", "),
        example));
  return lines;
}

}  // namespace core

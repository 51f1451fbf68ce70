#include "core/io/table_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/io/document.h"

namespace core {

namespace {

constexpr std::size_t longest_record = std::size_t{1} << 24;

std::size_t quotes_of(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '"'));
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The delimiter of a header: that which it has most of outside quotes, a comma where it has none.
char delimiter_of(std::string_view header) {
  constexpr std::string_view kinds = ",;\t|";
  std::size_t counts[kinds.size()] = {};
  bool quoted = false;
  for (const char c : header) {
    if (c == '"') quoted = !quoted;
    if (const auto kind = kinds.find(c); kind != std::string_view::npos && !quoted) ++counts[kind];
  }
  return kinds[static_cast<std::size_t>(std::max_element(counts, counts + kinds.size()) - counts)];
}

}  // namespace

TableReader::TableReader(LineReader lines) : lines_(std::move(lines)) {
  if (!read_record())
    throw InputError(fmt::format("{}: has no header, expected names of columns", name()));
  delimiter_ = delimiter_of(record_);
  split();
  for (const auto& [begin, size] : spans_)
    header_.emplace_back(trimmed(std::string_view(record_).substr(begin, size)));
}

bool TableReader::next(std::vector<std::string_view>& cells) {
  if (!read_record()) return false;
  split();
  cells.clear();
  for (const auto& [begin, size] : spans_)
    cells.push_back(std::string_view(record_).substr(begin, size));
  return true;
}

bool TableReader::read_record() {
  std::string_view line;
  do {
    if (!lines_.next(line)) return false;
  } while (trimmed(line).empty() || line.front() == '#');
  line_ = lines_.line_number();
  record_ = line;
  auto quotes = quotes_of(line);
  while (quotes % 2 == 1) {
    if (!lines_.next(line) || record_.size() + line.size() > longest_record) {
      throw InputError(fmt::format(
          "{}: line {}: found a quote that is never closed, expected \"...\"", name(), line_));
    }
    quotes += quotes_of(line);
    record_ += '\n';
    record_ += line;
  }
  return true;
}

// Finds the cells of the record; a quoted one loses its quotes in place.
void TableReader::split() {
  spans_.clear();
  std::size_t at = 0;
  for (;;) {
    if (at < record_.size() && record_[at] == '"') {
      std::size_t from = at + 1, to = at;
      while (from < record_.size()) {
        if (record_[from] == '"' && (from + 1 >= record_.size() || record_[from + 1] != '"')) break;
        if (record_[from] == '"') ++from;
        record_[to++] = record_[from++];
      }
      spans_.emplace_back(at, to - at);
      at = std::min(record_.find(delimiter_, from), record_.size());
    } else {
      const auto end = std::min(record_.find(delimiter_, at), record_.size());
      spans_.emplace_back(at, end - at);
      at = end;
    }
    if (at >= record_.size()) return;
    ++at;
  }
}

}  // namespace core

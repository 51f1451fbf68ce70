#include "core/measured/csv.h"

#include <fmt/format.h>

#include "core/error.h"

namespace core {

namespace {

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  std::vector<CsvRow> rows() {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a byte-order mark
    std::vector<CsvRow> rows;
    while (at_ < text_.size()) {
      CsvRow row = read_row();
      if (row.cells.size() > 1 || !row.cells.front().empty()) rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  CsvRow read_row() {
    CsvRow row{line_, {}};
    for (;;) {
      row.cells.push_back(text_.substr(at_, 1) == "\"" ? read_quoted() : read_plain());
      if (at_ >= text_.size()) return row;
      const char end = text_[at_++];
      if (end == ',') continue;
      if (end == '\r' && text_.substr(at_, 1) == "\n") ++at_;
      ++line_;
      return row;
    }
  }
  std::string read_plain() {
    const auto end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    const auto cell = text_.substr(at_, end - at_);
    if (cell.find('"') != std::string_view::npos) {
      throw InputError(fmt::format(
          "{}: line {}: found a quote inside a cell, expected cells with quotes in quotes",
          name_,
          line_));
    }
    at_ = end;
    return std::string(cell);
  }
  std::string read_quoted() {
    const int first = line_;
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        cell += text_[at_];
      } else if (text_.substr(at_ + 1, 1) == "\"") {
        cell += text_[at_++];
      } else {
        ++at_;
        if (at_ < text_.size() &&
            std::string_view(",\r\n").find(text_[at_]) == std::string_view::npos)
          break;
        return cell;
      }
    }
    throw InputError(fmt::format(
        "{}: line {}: a quoted cell begins here, expected a quote and a comma at its end",
        name_,
        first));
  }

  std::string_view text_, name_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<CsvRow> parse_csv(std::string_view text, std::string_view name) {
  return Parser(text, name).rows();
}

std::string csv_quoted(std::string_view cell) {
  if (cell.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(cell);
  std::string out = "\"";
  for (const char c : cell) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace core

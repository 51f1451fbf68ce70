#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/io/line_reader.h"

namespace core {

// A table of one header and rows, as people have them: cells between commas, semicolons, tabs or |
// (whichever the header has most of), quoted as in RFC 4180, read a row at a time. Empty lines and
// lines that begin with # are left out. Throws InputError with the line for a quote that is never
// closed.
class TableReader {
 public:
  explicit TableReader(LineReader lines);

  const std::vector<std::string>& header() const { return header_; }
  char delimiter() const { return delimiter_; }
  const std::string& name() const { return lines_.name(); }

  // The next row, whose cells are valid until the next call; there may be more or fewer of them
  // than columns. False at the end.
  bool next(std::vector<std::string_view>& cells);
  // The line on which the row begins that `next` gave last.
  std::int64_t line_number() const { return line_; }

 private:
  bool read_record();
  void split();

  LineReader lines_;
  char delimiter_ = ',';
  std::vector<std::string> header_;
  std::string record_;  // a row, of several lines where quotes hold their breaks
  std::vector<std::pair<std::size_t, std::size_t>> spans_;  // of the cells in `record_`
  std::int64_t line_ = 0;
};

}  // namespace core

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace core {

// A line of a table of comma-separated values (RFC 4180: cells with commas, quotes or line breaks
// stand in quotes, a quote in them doubled). `line` is the line of the file it begins on, from 1.
struct CsvRow {
  int line = 0;
  std::vector<std::string> cells;
};

// All rows, the header included; lines without any character are left out. Throws InputError naming
// `name` and the line for a quote that is not closed, or that stands inside a cell.
std::vector<CsvRow> parse_csv(std::string_view text, std::string_view name);

// A cell as it is written: in quotes where it needs them.
std::string csv_quoted(std::string_view cell);

}  // namespace core

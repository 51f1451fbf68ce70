#include "core/logs/run_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/plain_table.h"

namespace core {

namespace {

// A first row of numbers is no header.
void require_header(const TableReader& table) {
  const auto& header = table.header();
  const bool numbers = std::all_of(header.begin(), header.end(), [](const std::string& name) {
    return read_cell(name).kind == Cell::Kind::number;
  });
  if (!numbers) return;
  throw InputError(fmt::format("{}: line {}: found {}, expected a header with names of columns",
                               table.name(),
                               table.line_number(),
                               list_names(header)));
}

}  // namespace

RunTable read_run_table(TableReader table, const ObservationOptions& options) {
  require_header(table);
  const auto map = map_columns(table.header(), table.name(), options);
  const Conditions where(options.where, table.header(), map, table.name());
  return read_plain_table(table, map, where);
}

std::string short_file_name(const std::string& name) {
  return printable(std::filesystem::path(name).filename().string(), 200);
}

}  // namespace core

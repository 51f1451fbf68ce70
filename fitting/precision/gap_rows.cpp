#include "fitting/precision/gap_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/cell.h"
#include "core/measured/csv.h"

namespace fitting {
namespace {

constexpr std::array<std::string_view, 9> needed = {"id", "recipe", "method", "params_active", "tokens", "metric", "gap_abs", "gap_rel_percent", "baseline"};

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file)) throw core::InputError(fmt::format("{}: cannot be read", file.string()));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Cells of one row by the names of their columns.
class Cells {
 public:
  Cells(const std::string& file, const std::map<std::string, std::size_t>& columns, const core::CsvRow& row) : file_(file), columns_(columns), row_(row) {}

  std::string text(const std::string& column) const {
    const auto at = columns_.find(column);
    return at == columns_.end() || at->second >= row_.cells.size() ? "" : row_.cells[at->second];
  }
  std::optional<double> number(const std::string& column) const {
    const auto written = text(column);
    const auto cell = core::read_cell(written);
    if (cell.kind == core::Cell::Kind::blank) return std::nullopt;
    if (cell.kind != core::Cell::Kind::number) complain(column, written, "a number or nothing");
    return cell.value;
  }
  std::optional<double> positive(const std::string& column) const {
    const auto value = number(column);
    if (value && *value <= 0.0) complain(column, text(column), "a positive number or nothing");
    return value;
  }

 private:
  [[noreturn]] void complain(const std::string& column, const std::string& found, std::string_view expected) const {
    throw core::InputError(fmt::format("{}: line {}: {}: found \"{}\", expected {}", file_, row_.line, column, core::printable(found), expected));
  }

  const std::string& file_;
  const std::map<std::string, std::size_t>& columns_;
  const core::CsvRow& row_;
};

GapRow row_of(const Cells& cells, int line) {
  GapRow row;
  row.line = line;
  row.id = core::printable(cells.text("id"));
  row.recipe = cells.text("recipe");
  row.method = core::printable(cells.text("method"));
  row.model = cells.text("model");
  row.baseline = cells.text("baseline");
  row.metric = core::printable(cells.text("metric"));
  row.source = cells.text("source");
  row.where = cells.text("where_in_source");
  row.notes = cells.text("notes");
  row.N = cells.positive("params_active");
  if (!row.N) row.N = cells.positive("params_total");
  row.D = cells.positive("tokens");
  row.baseline_value = cells.positive("baseline_value");
  row.gap = cells.number("gap_abs");
  row.gap_percent = cells.number("gap_rel_percent");
  return row;
}

}  // namespace

bool GapRow::is_bound() const { return notes.find("UPPER BOUND") != std::string::npos; }

std::vector<GapRow> read_gap_rows(const std::filesystem::path& file) { return parse_gap_rows(contents(file), file.string()); }

std::vector<GapRow> parse_gap_rows(std::string_view text, const std::string& name) {
  const auto lines = core::parse_csv(text, name);
  if (lines.empty()) throw core::InputError(fmt::format("{}: found no line, expected a table with a header", name));
  std::map<std::string, std::size_t> columns;
  for (std::size_t i = 0; i < lines.front().cells.size(); ++i) columns.emplace(lines.front().cells[i], i);
  for (const auto column : needed) {
    if (!columns.contains(std::string(column))) {
      throw core::InputError(fmt::format("{}: line {}: found no column {}, expected those of data/measured/precision_gaps.csv", name, lines.front().line, column));
    }
  }
  std::vector<GapRow> rows;
  for (std::size_t l = 1; l < lines.size(); ++l) {
    if (lines[l].cells.size() != lines.front().cells.size()) {
      throw core::InputError(fmt::format("{}: line {}: found {} cells, expected {} as in the header", name, lines[l].line, lines[l].cells.size(), lines.front().cells.size()));
    }
    rows.push_back(row_of(Cells(name, columns, lines[l]), lines[l].line));
  }
  if (rows.empty()) throw core::InputError(fmt::format("{}: found a header alone, expected rows", name));
  return rows;
}

MeasuredGap measured_gap(const GapRow& row) {
  MeasuredGap out;
  const auto relative = [&]() -> std::optional<double> {
    if (row.gap_percent) return *row.gap_percent / 100.0;
    if (row.gap && row.baseline_value) return *row.gap / *row.baseline_value;
    return std::nullopt;
  }();
  if (row.metric == "train_loss" || row.metric == "val_loss") {
    out.nats = row.gap;
    if (relative) out.percent = 100.0 * *relative;
    if (!out.nats && relative && row.baseline_value) out.nats = *relative * *row.baseline_value;
  } else if (row.metric == "bpb") {
    if (relative) out.percent = 100.0 * *relative;
  } else if (row.metric == "ppl") {
    if (relative && *relative > -1.0) out.nats = std::log1p(*relative);
    if (out.nats && row.baseline_value && *row.baseline_value > 1.0) out.percent = 100.0 * *out.nats / std::log(*row.baseline_value);
  } else if (row.metric == "acc") {
    out.points = row.gap;
  }
  return out;
}

}  // namespace fitting

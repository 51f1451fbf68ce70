#include "core/logs/plain_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/mixture.h"

namespace core {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The columns that no variable was taken from, and whether they hold numbers.
struct OtherColumn {
  std::size_t column;
  bool number = false, text = false;
};

std::vector<OtherColumn> other_columns(const std::vector<std::string>& header,
                                       const ColumnMap& map) {
  std::vector<OtherColumn> others;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool taken = std::any_of(map.sources.begin(), map.sources.end(), [&](const auto& source) {
      return source.column == i && source.wanted;
    });
    if (!taken && !header[i].empty()) others.push_back({i, false, false});
  }
  return others;
}

// What is wrong with a cell that a variable is taken from, or "".
std::string problem_of(const Cell& cell,
                       std::string_view text,
                       std::string_view variable,
                       std::string_view column) {
  if (cell.kind == Cell::Kind::no_number && variable == "L")
    return fmt::format("diverged: {} is {}", printable(column), printable(text, 20));
  if (cell.kind == Cell::Kind::text || cell.kind == Cell::Kind::no_number)
    return fmt::format(
        "{}: found \"{}\", expected a number", printable(column), printable(text, 40));
  return {};
}

bool is_unfinished(std::string_view state) {
  return same_word(state, "crashed") || same_word(state, "failed") || same_word(state, "killed") ||
         same_word(state, "running") || same_word(state, "preempted");
}

class PlainTable {
 public:
  PlainTable(TableReader& table, const ColumnMap& map, const ObservationOptions& options)
      : reader_(table),
        map_(map),
        others_(other_columns(table.header(), map)),
        mixture_(table.header()),
        commas_(commas_of(table)),
        state_(options.keep_unfinished ? std::nullopt : state_column(table.header())) {
    table_.path = table.name();
    table_.file = short_file_name(table.name());
    table_.header = table.header();
    table_.notes = map.notes;
    if (const auto* loss = map.find("L")) table_.loss = table.header()[loss->column];
    for (const auto& source : map.sources)
      if (source.variable != "run") table_.variables.push_back(source.variable);
    table_.columns_from = table_.variables.size();
    for (const auto& other : others_) table_.variables.push_back(table.header()[other.column]);
  }

  RunTable read(const Conditions& where) {
    std::vector<std::string_view> cells;
    std::size_t left_out = 0;
    {
      DroppedLines dropped(table_.dropped);
      while (reader_.next(cells)) {
        if (cells.size() != reader_.header().size()) {
          dropped.add(
              row_name(),
              fmt::format("found {} cells, expected {}", cells.size(), reader_.header().size()));
        } else if (!where.hold(cells, commas_)) {
          ++left_out;
        } else {
          take(cells);
        }
      }
    }
    if (left_out > 0)
      table_.notes.push_back(fmt::format("{}: {} rows left out by --where", table_.file, left_out));
    drop_texts();
    table_.warnings = mixture_.warnings(table_.file);
    return std::move(table_);
  }

 private:
  std::string row_name() const {
    return fmt::format("{} line {}", table_.file, reader_.line_number());
  }

  void take(const std::vector<std::string_view>& cells) {
    if (table_.runs.size() >= most_runs) {
      throw InputError(
          fmt::format("{}: has more than {} rows, expected one row a run, or a column of steps",
                      reader_.name(),
                      most_runs));
    }
    RunTable::Run run;
    run.row = row_name();
    for (const auto& source : map_.sources) {
      if (source.variable == "run") {
        run.name = cells[source.column];
        continue;
      }
      const auto cell = converted(read_cell(cells[source.column], commas_), source);
      if (run.problem.empty() && source.wanted)
        run.problem = problem_of(
            cell, cells[source.column], source.variable, reader_.header()[source.column]);
      run.values.push_back(cell.kind == Cell::Kind::number ? cell.value : nan);
    }
    if (state_ && run.problem.empty() && is_unfinished(cells[*state_]))
      run.problem = fmt::format("unfinished: its state is {}", printable(cells[*state_], 20));
    const double N = size_of(run);
    for (auto& other : others_) {
      const auto cell = read_cell(cells[other.column], commas_);
      if (run.problem.empty()) mixture_.add(other.column, cells[other.column], cell, N);
      other.number |= cell.kind == Cell::Kind::number, other.text |= cell.kind == Cell::Kind::text;
      run.values.push_back(cell.kind == Cell::Kind::number ? cell.value : nan);
    }
    table_.runs.push_back(std::move(run));
  }

  // The parameters of a run whose variables are read.
  double size_of(const RunTable::Run& run) const {
    const auto end = table_.variables.begin() + static_cast<std::ptrdiff_t>(table_.columns_from);
    const auto at = std::find(table_.variables.begin(), end, "N");
    return at == end ? nan : run.values[static_cast<std::size_t>(at - table_.variables.begin())];
  }

  // Columns of text are no variables.
  void drop_texts() {
    const auto filter = [&](auto& list) {
      std::size_t to = table_.columns_from;
      for (std::size_t i = 0; i < others_.size(); ++i) {
        if (!others_[i].number || others_[i].text) continue;
        if (to != table_.columns_from + i) list[to] = std::move(list[table_.columns_from + i]);
        ++to;
      }
      list.resize(to);
    };
    filter(table_.variables);
    for (auto& run : table_.runs) filter(run.values);
  }

  TableReader& reader_;
  const ColumnMap& map_;
  std::vector<OtherColumn> others_;
  Mixture mixture_;
  Commas commas_;
  std::optional<std::size_t> state_;
  RunTable table_;
};

}  // namespace

void DroppedLines::add(std::string row, std::string why) {
  if (rows_.size() < most_listed)
    rows_.push_back({std::move(row), std::move(why)});
  else
    ++more_;
}

DroppedLines::~DroppedLines() {
  if (more_ > 0) rows_.push_back({fmt::format("{} more lines", more_), "as those above"});
}

Commas commas_of(const TableReader& table) {
  return table.delimiter() == ';' ? Commas::decimal : Commas::thousands;
}

RunTable read_plain_table(TableReader& table,
                          const ColumnMap& map,
                          const Conditions& where,
                          const ObservationOptions& options) {
  return PlainTable(table, map, options).read(where);
}

std::optional<std::size_t> state_column(const std::vector<std::string>& header) {
  const auto found = std::find_if(header.begin(), header.end(), [](const std::string& column) {
    return same_word(column, "State");
  });
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

}  // namespace core

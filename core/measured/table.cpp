#include "core/measured/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/io/document.h"
#include "core/measured/columns.h"
#include "core/measured/csv.h"

namespace core {

namespace {

constexpr std::int64_t largest_count = std::int64_t{1} << 40;
constexpr std::string_view status = "status", simulatable = "simulatable";

// Reads the cells of one row. Every complaint names file, line and column.
class RowReader {
 public:
  RowReader(std::string_view file, const CsvRow& row) : file_(file), row_(row) {}

  void read(std::size_t index, const MeasuredColumn& column, MeasuredRun& run) {
    index_ = index, name_ = column.name;
    std::visit([&](auto place) { read_into(run.*place, column); }, column.place);
  }
  bool word(std::size_t index, std::string_view name, std::string_view yes, std::string_view no) {
    index_ = index, name_ = name;
    if (cell() != yes && cell() != no) complain(fmt::format("{} or {}", yes, no));
    return cell() == yes;
  }

 private:
  const std::string& cell() const { return row_.cells[index_]; }
  [[noreturn]] void complain(std::string_view expected) const {
    throw InputError(fmt::format("{}: line {}, column {} ({}): found \"{}\", expected {}",
                                 file_,
                                 row_.line,
                                 index_ + 1,
                                 name_,
                                 printable(cell()),
                                 expected));
  }

  // Columns that two tables share may say the same twice: what stands counts, and an empty cell
  // takes nothing away.
  void read_into(std::string& to, const MeasuredColumn& column) const {
    if (!cell().empty()) to = cell();
    if (column.required && to.empty() && column.name == "id") complain("a name");
  }
  void read_into(MeasuredRun::Count& to, const MeasuredColumn&) const {
    if (cell().empty()) return;
    std::int64_t value = 0;
    const char* const end = cell().data() + cell().size();
    const auto read = std::from_chars(cell().data(), end, value);
    if (read.ec != std::errc() || read.ptr != end || value < 0 || value > largest_count)
      complain("a whole number of 0 or more");
    to = value;
  }
  void read_into(MeasuredRun::Number& to, const MeasuredColumn& column) const {
    if (cell().empty()) return;
    double value = 0.0;
    const char* const end = cell().data() + cell().size();
    const auto read = std::from_chars(cell().data(), end, value);
    if (read.ec != std::errc() || read.ptr != end || !std::isfinite(value) || value < 0.0)
      complain("a number of 0 or more");
    to = value * column.scale;
  }
  void read_into(MeasuredRun::Switch& to, const MeasuredColumn&) const {
    if (cell().empty()) return;
    const bool yes = cell() == "yes" || cell() == "True";
    if (!yes && cell() != "no" && cell() != "False") complain("yes or no");
    to = yes;
  }

  std::string_view file_, name_;
  const CsvRow& row_;
  std::size_t index_ = 0;
};

MeasuredSchema schema_of(const std::vector<std::string>& header) {
  const auto has = [&](std::string_view name) {
    return std::find(header.begin(), header.end(), name) != header.end();
  };
  if (has("test_case")) return MeasuredSchema::functional_tests;
  if (has("params_total_b")) return MeasuredSchema::vtrain;
  return MeasuredSchema::training_runs;
}

// The columns of a table in its own order; null for status and simulatable.
std::vector<const MeasuredColumn*> columns_in(const CsvRow& header,
                                              MeasuredSchema schema,
                                              std::string_view name) {
  const auto known = measured_columns(schema);
  std::vector<const MeasuredColumn*> out;
  std::set<std::string_view> seen;
  const auto refuse = [&](std::size_t i, std::string_view why) {
    throw InputError(fmt::format("{}: line {}, column {}: \"{}\": {}",
                                 name,
                                 header.line,
                                 i + 1,
                                 printable(header.cells[i]),
                                 why));
  };
  for (std::size_t i = 0; i < header.cells.size(); ++i) {
    const std::string_view cell = header.cells[i];
    if (!seen.insert(cell).second) refuse(i, "this column stands twice, expected once");
    const auto found = std::find_if(
        known.begin(), known.end(), [&](const MeasuredColumn& c) { return c.name == cell; });
    if (found != known.end()) {
      out.push_back(&*found);
    } else if (schema == MeasuredSchema::training_runs && (cell == status || cell == simulatable)) {
      out.push_back(nullptr);
    } else {
      std::vector<std::string> names;
      for (const auto column : columns_of(schema)) names.emplace_back(column);
      const auto near = nearest_name(std::string(cell), names);
      refuse(i,
             near ? fmt::format("unknown column; did you mean {}?", *near)
                  : fmt::format("unknown column of a table of {}", name_of(schema)));
    }
  }
  for (const auto& column : known) {
    if (column.required && !seen.contains(column.name)) {
      throw InputError(fmt::format("{}: line {}: missing column {} of a table of {}",
                                   name,
                                   header.line,
                                   column.name,
                                   name_of(schema)));
    }
  }
  return out;
}

void refuse_twins(const MeasuredTable& table) {
  std::set<std::string_view> ids;
  for (const auto& run : table.runs) {
    if (!ids.insert(run.id).second) {
      throw InputError(fmt::format("{}: line {}: id {} stands twice, expected once",
                                   table.name,
                                   run.line,
                                   printable(run.id)));
    }
  }
}

}  // namespace

std::string_view name_of(MeasuredSchema schema) {
  switch (schema) {
    case MeasuredSchema::training_runs:
      return "training runs";
    case MeasuredSchema::vtrain:
      return "vTrain runs";
    case MeasuredSchema::functional_tests:
      return "Megatron-LM functional tests";
  }
  CORE_ASSERT(false);
}

std::vector<std::string_view> columns_of(MeasuredSchema schema) {
  std::vector<std::string_view> names;
  for (const auto& column : measured_columns(schema)) names.push_back(column.name);
  if (schema == MeasuredSchema::training_runs) names.insert(names.end(), {status, simulatable});
  return names;
}

MeasuredTable parse_measured_table(std::string_view text, std::string name) {
  const auto rows = parse_csv(text, name);
  if (rows.empty())
    throw InputError(fmt::format("{}: empty, expected a header and rows of measured runs", name));
  MeasuredTable table{std::move(name), schema_of(rows.front().cells), {}};
  const auto columns = columns_in(rows.front(), table.schema, table.name);
  for (std::size_t r = 1; r < rows.size(); ++r) {
    const CsvRow& row = rows[r];
    if (row.cells.size() != columns.size()) {
      throw InputError(fmt::format("{}: line {}: found {} cells, expected {} as in the header",
                                   table.name,
                                   row.line,
                                   row.cells.size(),
                                   columns.size()));
    }
    MeasuredRun run;
    run.table = table.name, run.line = row.line;
    RowReader reader(table.name, row);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] != nullptr)
        reader.read(i, *columns[i], run);
      else if (rows.front().cells[i] == status)
        run.out_of_memory = reader.word(i, status, "oom", "ok");
      else
        run.simulatable = reader.word(i, simulatable, "yes", "no");
    }
    table.runs.push_back(std::move(run));
  }
  refuse_twins(table);
  return table;
}

MeasuredTable read_measured_table(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw InputError(fmt::format("{}: cannot be opened", file.string()));
  std::ostringstream text;
  text << in.rdbuf();
  return parse_measured_table(text.str(), file.string());
}

}  // namespace core

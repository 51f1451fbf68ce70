#pragma once

#include <optional>

#include "core/io/table_reader.h"
#include "core/logs/column_map.h"
#include "core/logs/conditions.h"
#include "core/logs/run_table.h"

namespace core {

// Lines of a table that are no runs: listed one by one up to most_listed, then counted.
class DroppedLines {
 public:
  explicit DroppedLines(std::vector<DroppedRow>& rows) : rows_(rows) {}
  void add(std::string row, std::string why);
  ~DroppedLines();

 private:
  std::vector<DroppedRow>& rows_;
  std::size_t more_ = 0;
};

// Which commas the cells of a table use, by what stands between them.
Commas commas_of(const TableReader& table);

// A table with one row a run. Throws InputError for more than most_runs of them.
RunTable read_plain_table(TableReader& table,
                          const ColumnMap& map,
                          const Conditions& where,
                          const ObservationOptions& options);

// The column that says whether a run finished (State of wandb's table of runs); nothing where there
// is none.
std::optional<std::size_t> state_column(const std::vector<std::string>& header);

}  // namespace core

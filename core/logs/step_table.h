#pragma once

#include "core/io/table_reader.h"
#include "core/logs/column_map.h"
#include "core/logs/conditions.h"
#include "core/logs/run_table.h"

namespace core {

// A table with one row a step, and with a column of runs where it holds several; runs of another N
// are others, too. `map` has step and L.
RunTable read_step_table(TableReader& table,
                         const ColumnMap& map,
                         const Conditions& where,
                         const ObservationOptions& options);

// Whether a table is wandb's export of a chart: a column of steps, then "RUN - METRIC" (with
// "...__MIN" and
// "...__MAX" beside it) of each run.
bool is_wide_table(const std::vector<std::string>& header);
RunTable read_wide_table(TableReader& table, const ObservationOptions& options);

}  // namespace core

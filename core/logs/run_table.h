#pragma once

#include <string>
#include <vector>

#include "core/io/line_reader.h"
#include "core/io/table_reader.h"
#include "core/logs/observations.h"

namespace core {

struct LogFormat;

// The runs of one file before what lacks is derived and what is bad is left out.
struct RunTable {
  struct Run {
    std::string row, name;       // row as in DroppedRow; name may be ""
    std::vector<double> values;  // of `variables`; NaN where there is none
    std::string problem;         // why it is not to be used, or ""
  };
  std::string path, file;              // its name with and without folders
  std::vector<std::string> variables;  // wanted ones and helpers (B, steps, ...), then columns
  std::size_t columns_from = 0;        // where the other columns begin in `variables`
  std::vector<std::string> header;     // for messages; empty for logs
  std::string loss;                    // the column or metric that L is from
  bool steps = false;                  // runs were read step by step, not a row each
  std::vector<Run> runs;
  std::vector<DroppedRow> dropped;  // lines that are no runs
  std::vector<std::string> notes, warnings;
};

// A table, whichever its shape.
RunTable read_run_table(TableReader table, const ObservationOptions& options);
// What a framework printed.
RunTable read_run_log(LineReader log, const LogFormat& format, const ObservationOptions& options);

// The name of a file without its folders.
std::string short_file_name(const std::string& name);

// Most rows of a table with one row a run, and most runs of any file: more is taken for an error.
inline constexpr std::size_t most_runs = 1'000'000;
// Most dropped lines that are listed one by one.
inline constexpr std::size_t most_listed = 1'000;

}  // namespace core

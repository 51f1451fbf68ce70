#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/measured/measured_run.h"

namespace core {

// The kinds of table that are known, each by a column that no other has.
enum class MeasuredSchema : std::uint8_t { training_runs, vtrain, functional_tests };
std::string_view name_of(MeasuredSchema schema);

struct MeasuredTable {
  std::string name;  // of the file
  MeasuredSchema schema = MeasuredSchema::training_runs;
  std::vector<MeasuredRun> runs;
};

// Reads a table of measured runs; its schema is recognised by its header. Throws InputError in one
// line that names file, line and column for an unknown or repeated column (with the nearest known
// one), a missing one, a row of another number of cells, a cell that is not what its column holds,
// or an id that stands twice.
MeasuredTable read_measured_table(const std::filesystem::path& file);
MeasuredTable parse_measured_table(std::string_view text, std::string name);

// Columns of a schema, in the order in which tables have them.
std::vector<std::string_view> columns_of(MeasuredSchema schema);

}  // namespace core

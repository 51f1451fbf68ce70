#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "core/measured/measured_run.h"
#include "core/measured/table.h"

namespace core {

// A column of a table: its name and where its cells go.
struct MeasuredColumn {
  using Place = std::variant<std::string MeasuredRun::*,
                             MeasuredRun::Count MeasuredRun::*,
                             MeasuredRun::Number MeasuredRun::*,
                             MeasuredRun::Switch MeasuredRun::*>;
  std::string_view name;
  Place place;
  double scale = 1.0;     // of numbers: from the column's unit to the field's
  bool required = false;  // a table without it is refused
};

// The columns that a schema may have; status and simulatable, which are words, are read apart.
std::span<const MeasuredColumn> measured_columns(MeasuredSchema schema);

}  // namespace core

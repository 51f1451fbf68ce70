#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/logs/cell.h"
#include "core/logs/curve.h"
#include "core/logs/observations.h"

namespace core {

// Where the variables of runs stand among the columns of a table (or the metrics of an export).
struct ColumnMap {
  struct Source {
    std::string variable;
    std::size_t column = 0;
    double scale = 1.0;
    bool logarithm = false;       // the column is a perplexity
    bool wanted = false;          // else a helper
    std::string convention = {};  // as in ColumnMeaning
  };
  std::vector<Source> sources;     // of wanted variables and helpers that were found
  std::vector<std::string> notes;  // a line each, such as "N <- params (B) x 1e9 (taken as total)"

  const Source* find(std::string_view variable) const;
};

// Whether a column of losses holds those of training steps, or those of evaluations.
LossKind loss_kind(const ColumnMap::Source& loss);

// The variables that options ask for: those wanted, then those of `also` and of `columns`.
std::vector<std::string> asked_variables(const ObservationOptions& options);

// Finds these variables, and those that they may be derived from. Throws InputError for a
// column in options.columns that is not there (with the nearest name) and for two columns that are
// as good.
ColumnMap map_columns(const std::vector<std::string>& header,
                      const std::string& file,
                      const ObservationOptions& options);

// The position of a column by its name, in its own case or else in any. Throws InputError as above;
// `flag` is how the user named it.
std::size_t column_of(const std::vector<std::string>& header,
                      std::string_view name,
                      const std::string& file,
                      std::string_view flag);

// "a, b, c" of names from outside, cut after some.
std::string list_names(const std::vector<std::string>& names);

// A row's values as a source sees them: what its cell holds in the unit of the variable.
Cell converted(Cell cell, const ColumnMap::Source& source);

}  // namespace core

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/logs/cell.h"
#include "core/logs/column_map.h"

namespace core {

// The conditions of ObservationOptions::where on the rows of one table.
class Conditions {
 public:
  // Throws InputError for a condition without = != < <= > >=, for an unknown column, and for < or >
  // with no number behind it. A name may be a column or a variable of `map`.
  Conditions(const std::vector<std::string>& where,
             const std::vector<std::string>& header,
             const ColumnMap& map,
             const std::string& file);

  bool empty() const { return conditions_.empty(); }
  // Whether a row meets all. Equal are numbers of the same value, blank cells and nothing, and the
  // same text; < and > hold for numbers only.
  bool hold(const std::vector<std::string_view>& cells, Commas commas) const;

 private:
  struct Condition {
    ColumnMap::Source source;
    std::string sign, text;
    Cell value;
  };
  std::vector<Condition> conditions_;
};

}  // namespace core

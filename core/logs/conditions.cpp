#include "core/logs/conditions.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/io/document.h"

namespace core {

namespace {

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

ColumnMap::Source source_of(const std::string& name,
                            const std::vector<std::string>& header,
                            const ColumnMap& map,
                            const std::string& file,
                            const std::string& flag) {
  const bool column = std::find(header.begin(), header.end(), name) != header.end();
  if (const auto* variable = map.find(name); variable != nullptr && !column) return *variable;
  return {name, column_of(header, name, file, flag), 1.0, false, false, {}};
}

bool compares(const Cell& cell,
              std::string_view text,
              std::string_view sign,
              const Cell& value,
              std::string_view wanted) {
  const bool numbers = cell.kind == Cell::Kind::number && value.kind == Cell::Kind::number;
  if (sign == "<") return numbers && cell.value < value.value;
  if (sign == "<=") return numbers && cell.value <= value.value;
  if (sign == ">") return numbers && cell.value > value.value;
  if (sign == ">=") return numbers && cell.value >= value.value;
  const bool blanks = cell.kind == Cell::Kind::blank && value.kind == Cell::Kind::blank;
  const bool same = numbers ? cell.value == value.value : blanks || trimmed(text) == wanted;
  return same == (sign == "=");
}

}  // namespace

Conditions::Conditions(const std::vector<std::string>& where,
                       const std::vector<std::string>& header,
                       const ColumnMap& map,
                       const std::string& file) {
  for (const auto& text : where) {
    const auto flag = fmt::format("--where \"{}\"", printable(text));
    const auto at = text.find_first_of("=!<>");
    if (at == std::string::npos || at == 0 || (text[at] == '!' && text.substr(at, 2) != "!="))
      throw InputError(
          fmt::format("{}: found no condition, expected COLUMN=VALUE (or != < <= > >=)", flag));
    const auto length = text.substr(at + 1, 1) == "=" ? 2U : 1U;
    auto sign = text.substr(at, length);
    if (sign == "==") sign = "=";
    Condition condition{source_of(trimmed(text.substr(0, at)), header, map, file, flag),
                        sign,
                        trimmed(text.substr(at + length)),
                        {}};
    condition.value = read_cell(condition.text);
    if ((sign[0] == '<' || sign[0] == '>') && condition.value.kind != Cell::Kind::number)
      throw InputError(
          fmt::format("{}: found \"{}\", expected a number", flag, printable(condition.text)));
    conditions_.push_back(std::move(condition));
  }
}

bool Conditions::hold(const std::vector<std::string_view>& cells, Commas commas) const {
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& c) {
    const auto text = cells[c.source.column];
    return compares(converted(read_cell(text, commas), c.source), text, c.sign, c.value, c.text);
  });
}

}  // namespace core

#include "core/logs/run_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/log_format.h"
#include "core/logs/name_words.h"
#include "core/logs/plain_table.h"
#include "core/logs/step_table.h"
#include "core/logs/variables.h"

namespace core {

namespace {

// A text that is no log and has no columns.
[[noreturn]] void refuse(const TableReader& table) {
  std::vector<std::string> names;
  for (const auto* format : formats::all()) names.emplace_back(format->name);
  throw InputError(fmt::format(
      "{}: found no steps of a run, nor a table, expected CSV or what one of these prints: {}",
      table.name(),
      list_names(names)));
}

// A first row of numbers is no header.
void require_header(const TableReader& table) {
  const auto& header = table.header();
  const bool numbers = std::all_of(header.begin(), header.end(), [](const std::string& name) {
    return read_cell(name).kind == Cell::Kind::number;
  });
  if (!numbers) return;
  throw InputError(fmt::format("{}: line {}: found {}, expected a header with names of columns",
                               table.name(),
                               table.line_number(),
                               list_names(header)));
}

// TensorBoard's export of one scalar.
bool is_tensorboard(const TableReader& table) {
  const auto& header = table.header();
  return header.size() == 3 && same_word(header[0], "Wall time") && same_word(header[1], "Step") &&
         same_word(header[2], "Value");
}

// Its file's name may say of what: run-NAME-tag-TAG.csv.
ObservationOptions with_value_as_loss(const TableReader& table, const ObservationOptions& options) {
  auto given = options;
  const bool named = std::any_of(given.columns.begin(), given.columns.end(), [](const auto& pair) {
    return pair.first == "L";
  });
  if (named) return given;
  if (is_score(short_file_name(table.name()))) {
    throw InputError(fmt::format(
        "{}: is a score by its name, expected a loss in nats a token (--columns L=Value takes it)",
        table.name()));
  }
  given.columns.emplace_back("L", "Value");
  return given;
}

}  // namespace

RunTable read_run_table(TableReader table, const ObservationOptions& options) {
  const auto& first = table.header().front();
  if (table.header().size() < 2 || first.starts_with('{') || first.starts_with('[')) refuse(table);
  require_header(table);
  if (is_wide_table(table.header())) return read_wide_table(table, options);
  const auto given = is_tensorboard(table) ? with_value_as_loss(table, options) : options;
  const auto map = map_columns(table.header(), table.name(), given);
  const Conditions where(options.where, table.header(), map, table.name());
  const auto* step = map.find("step");
  const auto* loss = map.find("L");
  // wandb's table of runs has their last step, and their state.
  if (step == nullptr || step->wanted || loss == nullptr || state_column(table.header()))
    return read_plain_table(table, map, where, options);
  return read_step_table(table, map, where, options);
}

std::string short_file_name(const std::string& name) {
  return printable(std::filesystem::path(name).filename().string(), 200);
}

}  // namespace core

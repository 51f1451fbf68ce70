// wandb's export of a chart: a column of steps (or of whatever its x axis is), then a column a run.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/name_words.h"
#include "core/logs/plain_table.h"
#include "core/logs/step_run.h"
#include "core/logs/step_table.h"
#include "core/logs/variables.h"

namespace core {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view between = " - ";

bool is_range(std::string_view column) {
  return column.ends_with("__MIN") || column.ends_with("__MAX");
}

struct RunColumn {
  std::size_t column = 0;
  std::string run, metric;
};

std::vector<RunColumn> run_columns(const std::vector<std::string>& header) {
  std::vector<RunColumn> found;
  for (std::size_t i = 1; i < header.size(); ++i) {
    const auto at = header[i].rfind(between);
    if (at == std::string::npos || is_range(header[i])) continue;
    found.push_back({i, header[i].substr(0, at), header[i].substr(at + between.size())});
  }
  return found;
}

std::vector<std::string> metrics_of(const std::vector<RunColumn>& columns) {
  std::vector<std::string> metrics;
  for (const auto& column : columns) {
    if (std::find(metrics.begin(), metrics.end(), column.metric) == metrics.end())
      metrics.push_back(column.metric);
  }
  return metrics;
}

class WideTable {
 public:
  WideTable(TableReader& table, const ObservationOptions& options)
      : reader_(table),
        options_(options),
        columns_(run_columns(table.header())),
        metrics_(metrics_of(columns_)),
        map_(map_columns(metrics_, table.name(), options)),
        where_(options.where, table.header(), {}, table.name()),
        commas_(commas_of(table)) {
    table_.path = table.name();
    table_.file = short_file_name(table.name());
    table_.header = metrics_;
    table_.steps = true;
    table_.notes = map_.notes;
    require_loss();
    const auto x = meaning_of(table.header().front());
    x_is_tokens_ = x && x->variable == "D", x_is_step_ = x && x->variable == "step";
    x_scale_ = x ? x->scale : 1.0;
    if (!x_is_tokens_ && !x_is_step_)
      table_.notes.push_back(
          fmt::format("{}: its first column, {}, counts neither steps nor tokens",
                      table_.file,
                      printable(table.header().front())));
    table_.variables = {"L", "step", "D"};
    table_.columns_from = 3;
    set_up_runs();
  }

  RunTable read() {
    std::vector<std::string_view> cells;
    std::size_t left_out = 0;
    {
      DroppedLines dropped(table_.dropped);
      while (reader_.next(cells)) {
        const auto line = fmt::format("{} line {}", table_.file, reader_.line_number());
        if (cells.size() != reader_.header().size())
          dropped.add(
              line,
              fmt::format("found {} cells, expected {}", cells.size(), reader_.header().size()));
        else if (!where_.hold(cells, commas_))
          ++left_out;
        else if (auto why = take(cells); !why.empty())
          dropped.add(line, why);
      }
    }
    if (left_out > 0)
      table_.notes.push_back(fmt::format("{}: {} rows left out by --where", table_.file, left_out));
    for (const auto& run : runs_) add_step_run(run, options_, table_);
    if (!x_is_step_)
      for (auto& run : table_.runs) run.values[1] = nan;
    return std::move(table_);
  }

 private:
  void require_loss() {
    const auto* loss = map_.find("L");
    if (loss != nullptr) {
      table_.loss = metrics_[loss->column];
      table_.notes.push_back(
          loss_note(options_, table_.file, printable(metrics_[loss->column]), loss_kind(*loss)));
      return;
    }
    const bool scores = std::any_of(metrics_.begin(), metrics_.end(), is_score);
    throw InputError(fmt::format(
        "{}: found {} ({}), expected a loss in nats a token (--columns L=METRIC takes another)",
        reader_.name(),
        list_names(metrics_),
        scores ? "a score, of which more is better" : "no loss by its name"));
  }

  void set_up_runs() {
    const auto loss = map_.find("L")->column;
    for (const auto& column : columns_) {
      if (column.metric != metrics_[loss]) continue;
      if (runs_.size() >= most_runs)
        throw InputError(fmt::format("{}: has more than {} runs", reader_.name(), most_runs));
      StepRun run;
      run.name = column.run;
      run.row = fmt::format("run {} in {}", printable(column.run), table_.file);
      run.kind = loss_kind(*map_.find("L"));
      run.values = {nan};
      runs_.push_back(std::move(run));
      run_cells_.push_back(column.column);
    }
  }

  std::string take(const std::vector<std::string_view>& cells) {
    const auto x = read_cell(cells.front(), commas_);
    if (x.kind != Cell::Kind::number)
      return fmt::format("{}: found \"{}\", expected a number",
                         printable(reader_.header().front()),
                         printable(cells.front(), 40));
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const auto loss = converted(read_cell(cells[run_cells_[i]], commas_), *map_.find("L"));
      if (loss.kind == Cell::Kind::text)
        return fmt::format("{}: found \"{}\", expected a loss",
                           printable(reader_.header()[run_cells_[i]]),
                           printable(cells[run_cells_[i]], 40));
      if (loss.kind == Cell::Kind::blank) continue;
      runs_[i].curve.add(x.value, loss.value);
      if (x_is_tokens_) runs_[i].values[0] = x.value * x_scale_;
    }
    return {};
  }

  TableReader& reader_;
  const ObservationOptions& options_;
  std::vector<RunColumn> columns_;
  std::vector<std::string> metrics_;
  ColumnMap map_;
  Conditions where_;
  Commas commas_;
  RunTable table_;
  bool x_is_tokens_ = false, x_is_step_ = false;
  double x_scale_ = 1.0;
  std::vector<StepRun> runs_;
  std::vector<std::size_t> run_cells_;
};

}  // namespace

bool is_wide_table(const std::vector<std::string>& header) {
  const auto columns = run_columns(header);
  if (columns.empty() || header.front().find(between) != std::string::npos) return false;
  const auto others =
      std::count_if(header.begin() + 1, header.end(), [](const std::string& column) {
        return column.find(between) == std::string::npos;
      });
  return others == 0;
}

RunTable read_wide_table(TableReader& table, const ObservationOptions& options) {
  return WideTable(table, options).read();
}

}  // namespace core

#include "core/logs/step_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/plain_table.h"
#include "core/logs/step_run.h"

namespace core {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// A column whose last value a run takes, and whether it holds numbers.
struct LastOf {
  ColumnMap::Source source;
  bool number = false, text = false;
};

class StepTable {
 public:
  StepTable(TableReader& table, const ColumnMap& map, const ObservationOptions& options)
      : reader_(table),
        options_(options),
        commas_(commas_of(table)),
        run_(map.find("run")),
        step_(*map.find("step")),
        loss_(*map.find("L")),
        size_(map.find("N")) {
    table_.path = table.name();
    table_.file = short_file_name(table.name());
    table_.header = table.header();
    table_.steps = true;
    table_.loss = table.header()[loss_.column];
    table_.notes = map.notes;
    table_.notes.push_back(
        loss_note(options_, table_.file, printable(table.header()[loss_.column]), loss_kind(loss_)));
    table_.variables = {"L", "step"};
    for (const auto& source : map.sources) {
      if (source.variable == "L" || source.variable == "step" || source.variable == "run") continue;
      last_.push_back({source, true, false});
      table_.variables.push_back(source.variable);
    }
    table_.columns_from = table_.variables.size();
    variables_ = last_.size();
    take_other_columns(map);
  }

  RunTable read(const Conditions& where) {
    std::vector<std::string_view> cells;
    std::size_t left_out = 0;
    {
      DroppedLines dropped(table_.dropped);
      while (reader_.next(cells)) {
        if (cells.size() != reader_.header().size())
          dropped.add(
              line_name(),
              fmt::format("found {} cells, expected {}", cells.size(), reader_.header().size()));
        else if (!where.hold(cells, commas_))
          ++left_out;
        else if (auto why = take(cells); !why.empty())
          dropped.add(line_name(), std::move(why));
      }
    }
    if (left_out > 0)
      table_.notes.push_back(fmt::format("{}: {} rows left out by --where", table_.file, left_out));
    table_.notes.push_back(
        fmt::format("{}: {} lines with steps are {} run{}{}",
                    table_.file,
                    lines_,
                    runs_.size(),
                    runs_.size() == 1 ? "" : "s",
                    run_ != nullptr || size_ == nullptr ? "" : ", told apart by N"));
    for (const auto& run : runs_) add_step_run(run, options_, table_);
    drop_texts();
    return std::move(table_);
  }

 private:
  std::string line_name() const {
    return fmt::format("{} line {}", table_.file, reader_.line_number());
  }

  void take_other_columns(const ColumnMap& map) {
    for (std::size_t i = 0; i < table_.header.size(); ++i) {
      const bool taken =
          std::any_of(map.sources.begin(), map.sources.end(), [&](const auto& source) {
            return source.column == i &&
                   (source.wanted || source.variable == "step" || source.variable == "run");
          });
      if (taken || table_.header[i].empty()) continue;
      last_.push_back({{table_.header[i], i, 1.0, false, false, {}}, false, false});
      table_.variables.push_back(table_.header[i]);
    }
  }

  // Takes a row in; why it cannot be, or "".
  std::string take(const std::vector<std::string_view>& cells) {
    const auto step = read_cell(cells[step_.column], commas_);
    if (step.kind != Cell::Kind::number)
      return fmt::format("{}: found \"{}\", expected a step",
                         printable(reader_.header()[step_.column]),
                         printable(cells[step_.column], 40));
    const auto loss = converted(read_cell(cells[loss_.column], commas_), loss_);
    if (loss.kind == Cell::Kind::text)
      return fmt::format("{}: found \"{}\", expected a loss",
                         printable(reader_.header()[loss_.column]),
                         printable(cells[loss_.column], 40));
    auto& run = run_of(cells);
    ++lines_;
    if (loss.kind != Cell::Kind::blank) run.curve.add(step.value, loss.value);
    for (std::size_t i = 0; i < last_.size(); ++i) {
      auto& last = last_[i];
      const auto cell = converted(read_cell(cells[last.source.column], commas_), last.source);
      last.number |= cell.kind == Cell::Kind::number, last.text |= cell.kind == Cell::Kind::text;
      if (cell.kind != Cell::Kind::number) continue;
      run.values[i] = cell.value;
      if (i >= variables_) continue;
      if (last.source.variable == "steps") run.total_steps = cell.value;
      if (last.source.variable == "lr") run.curve.add_learning_rate(cell.value);
    }
    return {};
  }

  StepRun& run_of(const std::vector<std::string_view>& cells) {
    key_ = run_ != nullptr ? cells[run_->column] : std::string_view();
    key_ += '\0';
    if (size_ != nullptr) key_ += cells[size_->column];
    const auto [at, is_new] = index_.try_emplace(key_, runs_.size());
    if (!is_new) return runs_[at->second];
    if (runs_.size() >= most_runs)
      throw InputError(fmt::format("{}: has more than {} runs, expected a column that names each",
                                   reader_.name(),
                                   most_runs));
    StepRun run;
    run.name = run_ != nullptr ? std::string(cells[run_->column]) : std::string();
    run.row = run.name.empty() ? table_.file
                               : fmt::format("run {} in {}", printable(run.name), table_.file);
    run.kind = loss_kind(loss_);
    run.values.assign(last_.size(), nan);
    return runs_.emplace_back(std::move(run));
  }

  // Columns of text are no variables.
  void drop_texts() {
    for (std::size_t i = last_.size(); i-- > variables_;) {
      if (last_[i].number && !last_[i].text) continue;
      const auto at = static_cast<std::ptrdiff_t>(i + 2);
      table_.variables.erase(table_.variables.begin() + at);
      for (auto& run : table_.runs) run.values.erase(run.values.begin() + at);
    }
  }

  TableReader& reader_;
  const ObservationOptions& options_;
  Commas commas_;
  const ColumnMap::Source* run_;
  ColumnMap::Source step_, loss_;
  const ColumnMap::Source* size_;
  RunTable table_;
  std::vector<LastOf> last_;  // of variables, then of other columns
  std::size_t variables_ = 0;
  std::size_t lines_ = 0;
  std::vector<StepRun> runs_;
  std::unordered_map<std::string, std::size_t> index_;
  std::string key_;
};

}  // namespace

RunTable read_step_table(TableReader& table,
                         const ColumnMap& map,
                         const Conditions& where,
                         const ObservationOptions& options) {
  return StepTable(table, map, options).read(where);
}

}  // namespace core

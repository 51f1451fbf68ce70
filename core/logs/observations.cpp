#include "core/logs/observations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/column_map.h"
#include "core/logs/derive.h"
#include "core/logs/log_format.h"
#include "core/logs/run_table.h"
#include "core/logs/variables.h"

namespace core {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
// Of so many runs that differ in what the law does not see (a sweep of learning rates), those whose
// loss is this many times that of the best have diverged.
constexpr std::size_t sweep_runs = 8;
constexpr double diverged_ratio = 1.5;

bool must_be_positive(std::string_view variable) {
  return std::string_view("NDUCLB").find(variable) != std::string_view::npos;
}

// Puts the runs of all files into one table of observations.
class Collector {
 public:
  explicit Collector(const ObservationOptions& options)
      : options_(options), asked_(asked_variables(options)) {
    if (options.wanted.empty())
      throw InputError("no variables are wanted, expected some such as N, D and L");
    all_.variables = asked_;
    all_.values.resize(asked_.size());
  }

  // Reads a file, which is opened twice: to see what it is, and to read it.
  void add(const std::function<LineReader(LineEnds)>& open) {
    const auto* format = find_log_format(open(LineEnds::cr_too));
    add(format != nullptr ? read_run_log(open(LineEnds::cr_too), *format, options_)
                          : read_run_table(TableReader(open(LineEnds::lf)), options_));
  }

  Observations finish() {
    if (!options_.keep_diverged) drop_diverged_rows();
    drop_unknown_variables();
    return std::move(all_);
  }

 private:
  void add(const RunTable& table) {
    for (const auto& note : table.notes) all_.notes.push_back(note);
    all_.warnings.insert(all_.warnings.end(), table.warnings.begin(), table.warnings.end());
    note_of_other_loss(table);
    if (table.runs.empty() && table.dropped.empty() && options_.where.empty())
      throw InputError(fmt::format("{}: has a header but no rows, expected runs", table.path));
    const auto values = asked_values(table, options_, all_.notes);
    require_columns(table, values);
    std::vector<std::size_t> places;
    for (std::size_t c = table.columns_from; c < table.variables.size(); ++c)
      places.push_back(place_of(table.variables[c]));
    for (std::size_t i = 0; i < table.runs.size(); ++i)
      add(table, table.runs[i], values[i], places);
    for (auto& column : all_.values) column.resize(all_.rows.size(), nan);
    all_.dropped.insert(all_.dropped.end(), table.dropped.begin(), table.dropped.end());
  }

  // Losses of other texts do not mix in a fit.
  void note_of_other_loss(const RunTable& table) {
    if (table.loss.empty()) return;
    if (loss_.empty()) loss_ = table.loss, file_of_loss_ = table.file;
    if (table.loss == loss_) return;
    all_.warnings.push_back(fmt::format(
        "{}: its loss is {}, that of {} is {}: losses of other texts do not mix in a fit",
        table.file,
        printable(table.loss),
        file_of_loss_,
        printable(loss_)));
  }

  // A table without a column for a variable, and nothing to derive it from, is an error, not so
  // many dropped rows.
  void require_columns(const RunTable& table,
                       const std::vector<std::vector<double>>& values) const {
    if (table.steps || values.empty()) return;
    for (std::size_t w = 0; w < options_.wanted.size(); ++w) {
      const auto& variable = options_.wanted[w];
      const auto end = table.variables.begin() + static_cast<std::ptrdiff_t>(table.columns_from);
      const bool known = std::find(table.variables.begin(), end, variable) != end;
      const bool any = std::any_of(
          values.begin(), values.end(), [&](const auto& row) { return !std::isnan(row[w]); });
      if (known || any) continue;
      throw InputError(fmt::format(
          "{}: no column is or gives {} ({}), expected --columns {}=COLUMN; columns: {}",
          table.path,
          printable(variable),
          variable_words(variable),
          printable(variable),
          list_names(table.header)));
    }
  }

  // Why a run is no observation, or "".
  std::string problem_of(const RunTable& table,
                         const RunTable::Run& run,
                         const std::vector<double>& values) {
    if (!run.problem.empty()) return run.problem;
    for (std::size_t w = 0; w < values.size(); ++w) {
      const auto& variable = asked_[w];
      if (std::isnan(values[w]) && w < options_.wanted.size()) return missing(table, variable);
      if (must_be_positive(variable) && values[w] <= 0.0)
        return fmt::format("{} is {:g}, expected more than 0", variable, values[w]);
    }
    if (options_.keep_duplicates) return {};
    if (table.steps && !run.name.empty()) {
      const auto [other, is_new] = names_.emplace(run.name, run.row);
      if (!is_new) return fmt::format("stands twice: the same run as {}", other->second);
    }
    if (std::find(options_.wanted.begin(), options_.wanted.end(), "L") == options_.wanted.end())
      return {};
    const auto [other, is_new] = points_.emplace(key_of(values), run.row);
    return is_new ? "" : fmt::format("stands twice: the same values as {}", other->second);
  }

  static std::string missing(const RunTable& table, const std::string& variable) {
    auto text = fmt::format("no {} ({})", printable(variable), variable_words(variable));
    if (!table.steps) return text;
    if (variable == "N") text += ": give --N";
    if (variable == "D") text += ": give --batch-tokens";
    return text;
  }

  // `places` are those of the table's other columns.
  void add(const RunTable& table,
           const RunTable::Run& run,
           const std::vector<double>& values,
           const std::vector<std::size_t>& places) {
    if (auto why = problem_of(table, run, values); !why.empty()) {
      all_.dropped.push_back({run.row, std::move(why)});
      return;
    }
    all_.rows.push_back(run.row);
    for (std::size_t w = 0; w < values.size(); ++w) all_.values[w].push_back(values[w]);
    for (std::size_t c = 0; c < places.size(); ++c) {
      auto& column = all_.values[places[c]];
      column.resize(all_.rows.size(), nan);
      column.back() = run.values[table.columns_from + c];
    }
  }

  // Of another column among the variables, a new one where no file had it before.
  std::size_t place_of(const std::string& name) {
    const auto [at, is_new] = places_.emplace(name, all_.variables.size());
    if (is_new) {
      all_.variables.push_back(name);
      all_.values.emplace_back(all_.rows.size(), nan);
    }
    return at->second;
  }

  // Values to compare rows by: those that are unknown are alike.
  static std::vector<double> key_of(std::vector<double> values) {
    for (double& value : values)
      if (std::isnan(value)) value = std::numeric_limits<double>::lowest();
    return values;
  }

  // Those of `also` that no file has.
  void drop_unknown_variables() {
    for (std::size_t v = asked_.size(); v-- > options_.wanted.size();) {
      const auto& column = all_.values[v];
      if (std::any_of(column.begin(), column.end(), [](double x) { return !std::isnan(x); }))
        continue;
      all_.variables.erase(all_.variables.begin() + static_cast<std::ptrdiff_t>(v));
      all_.values.erase(all_.values.begin() + static_cast<std::ptrdiff_t>(v));
    }
  }

  void drop_diverged_rows() {
    const auto loss =
        std::find(options_.wanted.begin(), options_.wanted.end(), "L") - options_.wanted.begin();
    if (loss == std::ssize(options_.wanted)) return;
    const auto& losses = all_.values[static_cast<std::size_t>(loss)];
    const auto setting = [&](std::size_t row) {
      std::vector<double> key;
      for (std::size_t w = 0; w < asked_.size(); ++w)
        if (std::ptrdiff_t(w) != loss) key.push_back(all_.values[w][row]);
      return key_of(key);
    };
    struct Sweep {
      std::size_t runs = 0;
      double best = std::numeric_limits<double>::infinity();
    };
    std::map<std::vector<double>, Sweep> sweeps;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      auto& sweep = sweeps[setting(i)];
      ++sweep.runs, sweep.best = std::min(sweep.best, losses[i]);
    }
    std::vector<bool> keep(all_.size(), true);
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const auto& sweep = sweeps[setting(i)];
      if (sweep.runs < sweep_runs || !(losses[i] > diverged_ratio * sweep.best)) continue;
      keep[i] = false;
      all_.dropped.push_back(
          {all_.rows[i],
           fmt::format("diverged: its loss {:.4g} is more than {} times the {:.4g} of the best "
                       "of {} runs like it",
                       losses[i],
                       diverged_ratio,
                       sweep.best,
                       sweep.runs)});
    }
    keep_only(keep);
  }

  void keep_only(const std::vector<bool>& keep) {
    const auto filter = [&](auto& list) {
      std::size_t to = 0;
      for (std::size_t i = 0; i < keep.size(); ++i) {
        if (!keep[i]) continue;
        if (to != i) list[to] = std::move(list[i]);
        ++to;
      }
      list.resize(to);
    };
    for (auto& column : all_.values) filter(column);
    filter(all_.rows);
  }

  const ObservationOptions& options_;
  std::vector<std::string> asked_;             // those wanted first
  std::map<std::string, std::size_t> places_;  // of other columns in all_.variables
  Observations all_;
  std::string loss_, file_of_loss_;                    // of the first file
  std::map<std::string, std::string> names_;           // of runs -> their rows
  std::map<std::vector<double>, std::string> points_;  // values asked for -> their rows
};

}  // namespace

const std::vector<double>* Observations::find(std::string_view variable) const {
  const auto at = std::find(variables.begin(), variables.end(), variable);
  return at == variables.end() ? nullptr
                               : &values[static_cast<std::size_t>(at - variables.begin())];
}

Observations read_observations(const std::vector<std::filesystem::path>& files,
                               const ObservationOptions& options) {
  if (files.empty()) throw InputError("no files of runs, expected a table or a log");
  Collector collector(options);
  for (const auto& file : files) {
    if (file == "-") {
      const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
      collector.add([&](LineEnds ends) { return LineReader::text(text, "standard input", ends); });
      continue;
    }
    collector.add([&](LineEnds ends) { return LineReader::file(file, ends); });
  }
  return collector.finish();
}

Observations parse_observations(std::string text,
                                std::string name,
                                const ObservationOptions& options) {
  Collector collector(options);
  collector.add([&](LineEnds ends) { return LineReader::text(text, name, ends); });
  return collector.finish();
}

}  // namespace core

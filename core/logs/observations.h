#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace core {

// How runs become the points that a law is fitted to, where their files do not say it themselves.
struct ObservationOptions {
  // Variable of the law -> column (or metric of a wandb export), such as N=params L=eval/loss.
  std::vector<std::pair<std::string, std::string>> columns;
  // Variables that the law needs, such as {"N", "D", "L"}: those not in `columns` are found by the
  // names that columns have (core/logs/variables.h) or derived (D = C / (6 N), ...).
  std::vector<std::string> wanted;
  // Variables that are taken where a file has or gives them, found likewise; so are all of
  // `columns`.
  std::vector<std::string> also;
  // What the law's N counts, where a table has several: "" for all, else "non-embedding" or
  // "active".
  std::string N_convention;
  std::optional<double> N;                // parameters of runs whose file has no column for them
  std::optional<double> tokens_per_step;  // likewise, where a run has steps but no tokens
  // Rows to keep, by their cells: "hparams=base", "variant=" (blank), "split!=train", "C>1e20",
  // with = != < <= > >=; a row must meet all. Rows left out by them are counted in the notes.
  std::vector<std::string> where;
  // Points along runs instead of their ends: rows are means of stretches of steps, those of the first
  // hundredth left out (the loss there is that of warming up). Runs that diverged or did not finish
  // count.
  bool along = false;
  bool keep_diverged = false;
  bool keep_unfinished = false;
  bool keep_duplicates = false;
};

struct DroppedRow {
  std::string row, why;  // row: "file.csv line 12", or "run NAME in file.csv"
};

// Runs as points: one row a run (or a line of a table with one row a run).
struct Observations {
  // Those wanted, in their order, those of `also` that were found, then every other column of
  // numbers by its name. N in parameters, D, U and B in tokens, C in FLOPs, L in nats a token (a
  // bits-a-byte column only if asked for by name).
  std::vector<std::string> variables;
  std::vector<std::vector<double>> values;  // [variable][row]; the wanted are finite, NaN elsewhere
  std::vector<std::string> rows;            // where each row comes from
  std::vector<DroppedRow> dropped;          // every run that is not a row, and why
  std::vector<std::string> notes;           // one line each: mapping, conversions, choices
  std::vector<std::string> warnings;        // of rows that may not belong into one fit

  std::size_t size() const { return rows.size(); }
  // Values of a variable by its name; null when there is none.
  const std::vector<double>* find(std::string_view variable) const;
};

// Reads files, "-" for standard input: tables (CSV between commas, semicolons or tabs: one row a run, or one a step with or
// without a column of runs; wandb's exports; TensorBoard's) and what training frameworks print
// (core/logs/formats), recognised by their content. Of a run with steps it takes the last tokens
// and the loss at its end: the mean of the middle 80 % of its last 1 % of points (of 10 points at
// least, but no more than a tenth of them). Memory does not grow with the number of steps but for
// that last 1 %.
//
// A run that diverged, did not finish, stands twice, or lacks a wanted variable is in `dropped`;
// there may be no row left. Throws InputError for a file that cannot be read or is neither table
// nor log, for an unknown column in `columns` or `where`, for two columns that could both be a
// wanted variable, and where no column is or gives one.
Observations read_observations(const std::vector<std::filesystem::path>& files,
                               const ObservationOptions& options);

// The same of one text in memory.
Observations parse_observations(std::string text,
                                std::string name,
                                const ObservationOptions& options);

}  // namespace core

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/column_map.h"
#include "core/logs/log_format.h"
#include "core/logs/log_text.h"
#include "core/logs/run_table.h"
#include "core/logs/step_run.h"
#include "core/logs/variables.h"

namespace core {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t searched = std::size_t{64} << 20;
constexpr int searched_lines_of_table = 64;

// Whether --columns asks for the validation losses of logs (L=val_loss).
bool wants_validation(const ObservationOptions& options) {
  return std::any_of(options.columns.begin(), options.columns.end(), [](const auto& pair) {
    const auto meaning = meaning_of(pair.second + " loss");
    return pair.first == "L" && meaning && meaning->convention == "held-out";
  });
}

struct Losses {
  const Curve& curve;
  LossKind kind;
  std::string words;
};

Losses losses_of(const LogRun& run, const ObservationOptions& options) {
  const bool validation =
      wants_validation(options) || (run.training.empty() && !run.validation.empty());
  std::string words = validation ? "its validation losses" : "its training losses";
  if (!validation && !run.validation.empty())
    words +=
        fmt::format("; not the {} of validation (--columns L=validation)", run.validation.points());
  return {validation ? run.validation : run.training,
          validation ? LossKind::evaluation : LossKind::training,
          words};
}

void add_notes(const LogRun& run,
               const ObservationOptions& options,
               const LogFormat& format,
               const Losses& losses,
               RunTable& table) {
  table.notes.push_back(fmt::format("{}: is a log of {}", table.file, format.name));
  if (!options.where.empty())
    table.notes.push_back(fmt::format("{}: --where does not apply to a log", table.file));
  if (!losses.curve.empty())
    table.notes.push_back(loss_note(options, table.file, losses.words, losses.kind));
  table.loss = losses.kind == LossKind::training ? "loss" : "validation loss";
  if (run.N) table.notes.push_back(fmt::format("{}: N <- {}", table.file, run.N_words));
  if (!run.tokens && run.samples && run.seq_len)
    table.notes.push_back(
        fmt::format("{}: D <- sequences trained on x sequence length", table.file));
}

}  // namespace

void LogRun::add_step(std::optional<double> step, std::optional<double> loss) {
  if (step && loss) training.add(*step, *loss);
}

const LogFormat* find_log_format(LineReader log) {
  const auto extension = std::filesystem::path(log.name()).extension();
  const bool table = extension == ".csv" || extension == ".tsv";
  std::string_view line;
  std::string buffer;
  for (std::size_t bytes = 0; bytes < searched && log.next(line); bytes += line.size() + 1) {
    if (table && log.line_number() > searched_lines_of_table) break;
    const auto plain = without_colours(line, buffer);
    for (const auto* format : formats::all()) {
      if (format->recognises(plain)) return format;
    }
  }
  return nullptr;
}

RunTable read_run_log(LineReader log, const LogFormat& format, const ObservationOptions& options) {
  LogRun read;
  std::string_view line;
  std::string buffer;
  while (log.next(line)) format.read(without_colours(line, buffer), read);
  if (format.finish != nullptr) format.finish(read);

  RunTable table;
  table.path = log.name();
  table.file = short_file_name(log.name());
  table.steps = true;
  table.variables = {"L", "step", "N", "D", "B", "batch_seqs", "seq_len", "steps"};
  table.columns_from = table.variables.size();
  const auto losses = losses_of(read, options);
  add_notes(read, options, format, losses, table);
  if (!read.tokens && read.samples && read.seq_len) read.tokens = *read.samples * *read.seq_len;
  StepRun run{table.file,
              std::filesystem::path(table.file).stem().string(),
              losses.curve,
              losses.kind,
              {},
              read.total_steps};
  for (const auto& value :
       {read.N, read.tokens, read.batch_tokens, read.batch_seqs, read.seq_len, read.total_steps})
    run.values.push_back(value.value_or(nan));
  add_step_run(run, options, table);
  if (!read.counts_steps) table.runs.front().values[1] = nan;
  if (losses.curve.empty() && table.runs.front().problem.empty())
    table.runs.front().problem = "no step has a loss";
  return table;
}

}  // namespace core

#pragma once

#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/io/line_reader.h"
#include "core/logs/curve.h"

namespace core {

// One run as a framework prints it: its losses, and what the log says of model and data, as far as
// it does.
struct LogRun {
  Curve training, validation;  // by steps
  bool counts_steps = true;    // else the steps of the curves are only the order of its lines
  std::optional<double> N;
  std::string N_words;                    // where N is from: "the log's total", ...
  std::optional<double> tokens, samples;  // trained on by the last line
  std::optional<double> batch_seqs, batch_tokens, seq_len, total_steps;
  std::map<std::string, std::string> arguments;  // of formats that print them

  // A step's line. Losses that a line does not have are no points.
  void add_step(std::optional<double> step, std::optional<double> loss);
};

// A run-log format: one file in core/logs/formats. Lines come without colours and line ends.
struct LogFormat {
  std::string_view name;                         // of the framework
  bool (*recognises)(std::string_view line);     // whether only this framework prints such a line
  void (*read)(std::string_view line, LogRun&);  // takes what a line says; called with all lines
  void (*finish)(LogRun&) = nullptr;             // takes what they say together
};

namespace formats {
std::span<const LogFormat* const> all();
}

// The format whose lines stand in a text, among its first 64 MiB (of a file called .csv or .tsv its
// first 64 lines); null when there is none.
const LogFormat* find_log_format(LineReader log);

}  // namespace core

#include "core/logs/derive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "core/logs/column_map.h"
#include "core/logs/run_name.h"

namespace core {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double flops_per_parameter_and_token = 6.0;  // Kaplan et al. 2020, section 2.1

enum Known : std::size_t {
  N,
  D,
  U,
  C,
  L,
  epochs,
  B,
  batch_seqs,
  seq_len,
  step,
  steps,
  known_count
};
constexpr std::array<std::string_view, known_count> known_names = {
    "N", "D", "U", "C", "L", "epochs", "B", "batch_seqs", "seq_len", "step", "steps"};
using Values = std::array<double, known_count>;

struct Rule {
  Known target;
  std::vector<Known> needs;
  double (*value)(const Values&);
  std::string_view words;
};

// In the order in which they are tried: what a run counted itself before what 6 N D says.
const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {B,
       {batch_seqs, seq_len},
       [](const Values& v) { return v[batch_seqs] * v[seq_len]; },
       "B <- sequences a step x sequence length"},
      {D,
       {step, B},
       [](const Values& v) { return v[step] * v[B]; },
       "D <- last step x tokens a step"},
      {D,
       {steps, B},
       [](const Values& v) { return v[steps] * v[B]; },
       "D <- steps x tokens a step"},
      {B, {D, steps}, [](const Values& v) { return v[D] / v[steps]; }, "B <- D / steps"},
      {D, {U, epochs}, [](const Values& v) { return v[U] * v[epochs]; }, "D <- U x epochs"},
      {D,
       {C, N},
       [](const Values& v) { return v[C] / (flops_per_parameter_and_token * v[N]); },
       "D <- C / (6 N)"},
      {N,
       {C, D},
       [](const Values& v) { return v[C] / (flops_per_parameter_and_token * v[D]); },
       "N <- C / (6 D)"},
      {C,
       {N, D},
       [](const Values& v) { return flops_per_parameter_and_token * v[N] * v[D]; },
       "C <- 6 N D"},
      {U, {D, epochs}, [](const Values& v) { return v[D] / v[epochs]; }, "U <- D / epochs"},
      {epochs, {D, U}, [](const Values& v) { return v[D] / v[U]; }, "epochs <- D / U"},
  };
  return all;
}

// Which rules gave how many values that are used; written out once a file.
class Used {
 public:
  void count(std::string words) { ++counts_[std::move(words)]; }
  bool says(std::string_view flag) const {
    return std::any_of(counts_.begin(), counts_.end(), [&](const auto& entry) {
      return entry.first.find(flag) != std::string::npos;
    });
  }
  void write(const RunTable& table, std::vector<std::string>& notes) const {
    for (const auto& [words, runs] : counts_)
      notes.push_back(
          fmt::format("{}: {} ({} of {} runs)", table.file, words, runs, table.runs.size()));
  }

 private:
  std::map<std::string, std::size_t> counts_;
};

void take_options(const RunTable::Run& run,
                  const RunTable& table,
                  const ObservationOptions& options,
                  Values& values,
                  std::array<std::string, known_count>& origin) {
  if (std::isnan(values[N]) && options.N)
    values[N] = *options.N, origin[N] = fmt::format("N <- {:g} (--N)", *options.N);
  if (std::isnan(values[B]) && options.tokens_per_step) {
    values[B] = *options.tokens_per_step;
    origin[B] = fmt::format("B <- {:g} tokens a step (--batch-tokens)", *options.tokens_per_step);
  }
  if (!std::isnan(values[N]) || (!std::isnan(values[C]) && !std::isnan(values[D]))) return;
  if (const auto size = size_in_name(run.name))
    values[N] = *size, origin[N] = "N <- the size in the run's name (nominal)";
  else if (const auto of_file = size_in_name(table.file); of_file && table.steps)
    values[N] = *of_file, origin[N] = "N <- the size in the file's name (nominal)";
}

void derive(Values& values,
            std::array<std::string, known_count>& origin,
            std::array<const Rule*, known_count>& by) {
  const auto has = [&](Known k) { return !std::isnan(values[k]); };
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& rule : rules()) {
      if (has(rule.target) || !std::all_of(rule.needs.begin(), rule.needs.end(), has)) continue;
      const double value = rule.value(values);
      if (!std::isfinite(value)) continue;
      values[rule.target] = value, origin[rule.target] = rule.words, by[rule.target] = &rule;
      changed = true;
    }
  }
}

void count_used(Known k,
                const std::array<std::string, known_count>& origin,
                const std::array<const Rule*, known_count>& by,
                Used& used) {
  if (!origin[k].empty()) used.count(origin[k]);
  if (by[k] == nullptr) return;
  for (const auto need : by[k]->needs) count_used(need, origin, by, used);
}

}  // namespace

std::vector<std::vector<double>> asked_values(const RunTable& table,
                                              const ObservationOptions& options,
                                              std::vector<std::string>& notes) {
  const auto asked = asked_variables(options);
  std::array<std::optional<std::size_t>, known_count> columns;
  std::vector<std::optional<std::size_t>> direct(asked.size());
  std::vector<std::optional<Known>> known(asked.size());
  const auto position = [&](std::string_view name) -> std::optional<std::size_t> {
    const auto end = table.variables.begin() + static_cast<std::ptrdiff_t>(table.columns_from);
    const auto at = std::find(table.variables.begin(), end, name);
    if (at == end) return std::nullopt;
    return static_cast<std::size_t>(at - table.variables.begin());
  };
  for (std::size_t k = 0; k < known_count; ++k) columns[k] = position(known_names[k]);
  for (std::size_t w = 0; w < asked.size(); ++w) {
    direct[w] = position(asked[w]);
    const auto at = std::find(known_names.begin(), known_names.end(), asked[w]);
    if (at != known_names.end()) known[w] = static_cast<Known>(at - known_names.begin());
  }
  Used used;
  std::vector<std::vector<double>> out;
  out.reserve(table.runs.size());
  for (const auto& run : table.runs) {
    Values values;
    for (std::size_t k = 0; k < known_count; ++k)
      values[k] = columns[k] ? run.values[*columns[k]] : nan;
    std::array<std::string, known_count> origin;
    std::array<const Rule*, known_count> by{};
    take_options(run, table, options, values, origin);
    derive(values, origin, by);
    auto& row = out.emplace_back();
    for (std::size_t w = 0; w < asked.size(); ++w) {
      row.push_back(known[w] ? values[*known[w]] : direct[w] ? run.values[*direct[w]] : nan);
      if (known[w]) count_used(*known[w], origin, by, used);
    }
  }
  used.write(table, notes);
  const auto idle =
      [&](const std::optional<double>& option, std::string_view variable, std::string_view flag) {
        if (option && !used.says(flag))
          notes.push_back(
              fmt::format("{}: {} has no effect: it has its own {}", table.file, flag, variable));
      };
  if (!table.runs.empty()) {
    idle(options.N, "N", "--N");
    idle(options.tokens_per_step, "D", "--batch-tokens");
  }
  return out;
}

}  // namespace core

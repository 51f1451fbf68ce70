#include "fitting/runs/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/io/document.h"
#include "core/logs/cell.h"
#include "fitting/runs/best_settings.h"
#include "fitting/fitted_law.h"
#include "fitting/runs/run_warnings.h"

namespace fitting {
namespace {

// A variable by its own name, or as the reader of runs calls it.
const std::vector<double>* column_of(const core::Observations& observations, const std::string& variable) {
  static const std::map<std::string, std::string> also = {{"P_w", "bits_w"}, {"P_a", "bits_a"}, {"P_kv", "bits_kv"}};
  if (const auto* column = observations.find(variable)) return column;
  const auto other = also.find(variable);
  return other == also.end() ? nullptr : observations.find(other->second);
}

// What a law's N counts, in the reader's words.
std::string counted_by(const Variable& variable) {
  if (variable.meaning.find("without embeddings") != std::string::npos) return "non-embedding";
  if (variable.meaning.find("active") != std::string::npos) return "active";
  return {};
}

// Why a row cannot be fitted; empty where it can.
std::string why_not(const Law& law, const std::vector<double>& variables, double measured) {
  if (!(measured > 0.0)) return fmt::format("{} is {:g}, expected a positive number", law.output, measured);
  for (std::size_t v = 0; v < variables.size(); ++v) {
    const auto& name = law.variables[v].name;
    if ((name == "N" || name == "D" || name == "C" || name == "U") && !(variables[v] > 0.0)) {
      return fmt::format("{} is {:g}, expected a positive number", name, variables[v]);
    }
  }
  return {};
}

void drop_highest(Runs& runs, const Law& law, std::int64_t count) {
  if (count <= 0) return;
  std::vector<std::size_t> order(runs.rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return runs.rows.measured[a] > runs.rows.measured[b]; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(count)));
  std::sort(order.begin(), order.end());
  std::vector<bool> keep(runs.rows.size(), true);
  for (const auto i : order) {
    keep[i] = false;
    runs.observations.dropped.push_back({runs.observations.rows[i], fmt::format("among the {} of highest {} ({:.6g})", count, law.output, runs.rows.measured[i])});
  }
  keep_rows(runs, keep);
}

// "compute>1e21" over the rows; compute is C, or what the law makes of N and D.
std::vector<bool> held_out_by(const std::string& condition, const Law& law, const Runs& runs) {
  const auto sign = condition.find_first_of("<>");
  if (sign == std::string::npos || sign == 0) {
    throw core::InputError(fmt::format("--holdout: found \"{}\", expected NAME>VALUE or NAME<VALUE such as compute>1e21", core::printable(condition)));
  }
  static const std::map<std::string, std::string> words = {{"compute", "C"}, {"flops", "C"}, {"params", "N"}, {"parameters", "N"}, {"tokens", "D"}};
  auto name = condition.substr(0, sign);
  if (const auto word = words.find(name); word != words.end()) name = word->second;
  const auto cell = core::read_cell(condition.substr(sign + 1));
  if (cell.kind != core::Cell::Kind::number) {
    throw core::InputError(fmt::format("--holdout: found \"{}\", expected a number after {}", core::printable(condition.substr(sign + 1)), condition[sign]));
  }
  std::vector<double> values;
  const auto variable = std::find_if(law.variables.begin(), law.variables.end(), [&](const auto& v) { return v.name == name; });
  if (variable != law.variables.end()) {
    values = runs.rows.columns[static_cast<std::size_t>(variable - law.variables.begin())];
  } else if (name == "C" && !law.training_flops.empty()) {
    for (std::size_t i = 0; i < runs.rows.size(); ++i) {
      std::vector<double> at;
      for (const auto& column : runs.rows.columns) at.push_back(column[i]);
      values.push_back(training_flops(law, at));
    }
  } else if (const auto* column = runs.observations.find(name)) {
    values = *column;
  } else {
    throw core::InputError(fmt::format("--holdout: found \"{}\", expected compute, N, D or a column", core::printable(name)));
  }
  std::vector<bool> out;
  for (const double v : values) out.push_back(condition[sign] == '>' ? v > cell.value : v < cell.value);
  return out;
}

}  // namespace

void keep_rows(Runs& runs, const std::vector<bool>& keep) {
  const auto filter = [&](auto& values) {
    std::size_t to = 0;
    for (std::size_t i = 0; i < keep.size(); ++i) {
      if (keep[i]) values[to++] = values[i];
    }
    values.resize(to);
  };
  for (auto& column : runs.rows.columns) filter(column);
  filter(runs.rows.measured);
  filter(runs.observations.rows);
  for (auto& column : runs.observations.values) filter(column);
}

std::vector<std::string> wanted_by(const Law& law) {
  std::vector<std::string> wanted;
  for (const auto& variable : law.variables) {
    if (!variable.otherwise) wanted.push_back(variable.name);
  }
  wanted.push_back(law.output);
  return wanted;
}

Runs runs_of(const Law& law, core::Observations observations, const RunOptions& options) {
  Runs runs;
  runs.observations = std::move(observations);
  auto& read = runs.observations;
  for (const auto& variable : law.variables) {
    const auto* column = column_of(read, variable.name);
    auto values = column != nullptr ? *column : std::vector<double>(read.size(), variable.otherwise.value_or(0.0));
    for (double& v : values) {
      if (std::isnan(v) && variable.otherwise) v = *variable.otherwise;
    }
    if (column == nullptr) {
      read.notes.push_back(fmt::format("{} <- {:g}, {}: no column has it", variable.name, *variable.otherwise, variable.meaning));
      runs.assumed.push_back(variable.name);
    }
    runs.rows.columns.push_back(std::move(values));
  }
  const auto* measured = read.find(law.output);
  CORE_ASSERT(measured != nullptr);
  runs.rows.measured = *measured;
  std::vector<bool> keep;
  for (std::size_t i = 0; i < runs.rows.size(); ++i) {
    std::vector<double> variables;
    for (const auto& column : runs.rows.columns) variables.push_back(column[i]);
    const auto why = why_not(law, variables, runs.rows.measured[i]);
    keep.push_back(why.empty());
    if (!why.empty()) read.dropped.push_back({read.rows[i], why});
  }
  keep_rows(runs, keep);
  if (law.setting) take_best_settings(law, options.near_best, runs);
  drop_highest(runs, law, options.drop_highest);
  if (runs.rows.size() == 0) {
    throw core::InputError(fmt::format("found no run to fit, expected some{}", read.dropped.empty() ? "" : fmt::format("; {}: {}", read.dropped.front().row, read.dropped.front().why)));
  }
  for (auto& warning : warnings_of_rows(law, runs.rows)) read.warnings.push_back(std::move(warning));
  runs.held_out = options.holdout.empty() ? std::vector<bool>(runs.rows.size(), false) : held_out_by(options.holdout, law, runs);
  return runs;
}

Runs read_runs(const Law& law, const std::vector<std::filesystem::path>& files, const RunOptions& options) {
  auto reading = options.reading;
  reading.wanted = wanted_by(law);
  for (const auto& variable : law.variables) {
    if (variable.otherwise) reading.also.push_back(variable.name);
    if (variable.name == "N") reading.N_convention = counted_by(variable);
  }
  if (law.setting) {
    for (const auto* name : {"N", "D", "L"}) reading.also.emplace_back(name);
  }
  return runs_of(law, core::read_observations(files, reading), options);
}

}  // namespace fitting

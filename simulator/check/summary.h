#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/check/check.h"

namespace simulator {

// Errors of several rows, relative: predicted / measured - 1. The percentile interpolates between
// the two nearest rows.
struct ErrorSummary {
  std::size_t n = 0;
  double median_abs = 0.0, mean_abs = 0.0, p90_abs = 0.0;
  double bias = 0.0;  // mean of the signed errors
};
ErrorSummary summary_of(std::vector<double> errors);
// Value below which the share `q` of the values lies: linear between the ranks next to q (n - 1).
// Requires some values.
double quantile(std::vector<double> values, double q);

// Predicted to fit against what happened; plans within 3 % of the limit are borderline, and neither
// right nor wrong.
struct MemoryVerdicts {
  std::size_t n = 0, correct = 0, false_fits = 0, false_ooms = 0, borderline = 0;
};

struct Summary {
  ErrorSummary step_time, memory;
  std::optional<double> inside_interval;  // share of the step times; these rows may be among those that made the interval
  MemoryVerdicts oom;
  std::size_t skipped = 0;
};
Summary summarise(const std::vector<const CheckedRow*>& rows);

// The same by something that rows share: source, GPU, framework, precision, kind of memory.
enum class GroupBy : std::uint8_t { source, gpu, framework, precision, memory_kind };
inline constexpr std::size_t groupings = 5;
std::string_view name_of(GroupBy by);
std::map<std::string, Summary> summarise_by(const std::vector<CheckedRow>& rows, GroupBy by);
Summary summarise_all(const std::vector<CheckedRow>& rows);

}  // namespace simulator

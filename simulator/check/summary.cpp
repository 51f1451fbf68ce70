#include "simulator/check/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "simulator/check/software.h"

namespace simulator {

namespace {

void count_verdict(const CheckedRow& row, MemoryVerdicts& verdicts) {
  ++verdicts.n;
  if (row.predicted->fits == Fits::borderline)
    ++verdicts.borderline;
  else if ((row.predicted->fits == Fits::no) == row.run.out_of_memory)
    ++verdicts.correct;
  else if (row.run.out_of_memory)
    ++verdicts.false_fits;
  else
    ++verdicts.false_ooms;
}

std::string key_of(const CheckedRow& row, GroupBy by) {
  switch (by) {
    case GroupBy::source:
      return row.source;
    case GroupBy::gpu:
      return row.gpu;
    case GroupBy::framework:
      return row.run.framework.empty() ? std::string(name_of(stack_of(row.run)))
                                       : row.run.framework;
    case GroupBy::precision:
      return row.recipe.empty() ? "not predicted" : row.recipe;
    case GroupBy::memory_kind:
      return row.measured ? std::string(name_of(row.measured->memory_kind)) : "none";
  }
  CORE_ASSERT(false);
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  CORE_ASSERT(!values.empty());
  std::ranges::sort(values);
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

ErrorSummary summary_of(std::vector<double> errors) {
  ErrorSummary s;
  s.n = errors.size();
  if (errors.empty()) return s;
  const double n = static_cast<double>(errors.size());
  s.bias = std::accumulate(errors.begin(), errors.end(), 0.0) / n;
  for (double& error : errors) error = std::abs(error);
  s.mean_abs = std::accumulate(errors.begin(), errors.end(), 0.0) / n;
  s.median_abs = quantile(errors, 0.5);
  s.p90_abs = quantile(std::move(errors), 0.9);
  return s;
}

Summary summarise(const std::vector<const CheckedRow*>& rows) {
  Summary s;
  std::vector<double> times, memories;
  double inside = 0.0;
  for (const auto* row : rows) {
    if (!row->skipped_because.empty()) {
      ++s.skipped;
      continue;
    }
    if (row->step_time_error) {
      times.push_back(*row->step_time_error);
      const double measured = *row->measured->step_time_s;
      inside += row->predicted->low_s <= measured && measured <= row->predicted->high_s;
    }
    if (row->memory_error) memories.push_back(*row->memory_error);
    count_verdict(*row, s.oom);
  }
  if (!times.empty()) s.inside_interval = inside / static_cast<double>(times.size());
  s.step_time = summary_of(std::move(times));
  s.memory = summary_of(std::move(memories));
  return s;
}

std::string_view name_of(GroupBy by) {
  switch (by) {
    case GroupBy::source:
      return "source";
    case GroupBy::gpu:
      return "gpu";
    case GroupBy::framework:
      return "framework";
    case GroupBy::precision:
      return "precision";
    case GroupBy::memory_kind:
      return "memory_kind";
  }
  CORE_ASSERT(false);
}

std::map<std::string, Summary> summarise_by(const std::vector<CheckedRow>& rows, GroupBy by) {
  std::map<std::string, std::vector<const CheckedRow*>> groups;
  for (const auto& row : rows) groups[key_of(row, by)].push_back(&row);
  std::map<std::string, Summary> out;
  for (const auto& [key, of] : groups) out.emplace(key, summarise(of));
  return out;
}

Summary summarise_all(const std::vector<CheckedRow>& rows) {
  std::vector<const CheckedRow*> all;
  for (const auto& row : rows) all.push_back(&row);
  return summarise(all);
}

}  // namespace simulator

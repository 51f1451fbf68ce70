#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fitting {

// One published contrast of a recipe against a baseline of more bits: a row of data/measured/precision_gaps.csv.
struct GapRow {
  int line = 0;
  std::string id, recipe, method, model, baseline, metric, source, where, notes;
  std::optional<double> N, D;               // parameters (active ones where both are given) and tokens
  std::optional<double> baseline_value;     // of the metric
  std::optional<double> gap, gap_percent;   // of the metric; positive where the recipe is worse
  bool is_bound() const;                    // the gap is at most that
};

// Throws InputError for a file that does not read, lacks a column or has a cell that is no number.
std::vector<GapRow> read_gap_rows(const std::filesystem::path& file);
// The same of a text; `name` is for messages.
std::vector<GapRow> parse_gap_rows(std::string_view text, const std::string& name);

// A row's gap in the units that it allows.
struct MeasuredGap {
  std::optional<double> nats;      // a token
  std::optional<double> percent;   // of the baseline's loss
  std::optional<double> points;    // of a task
  bool any() const { return nats || percent || points; }
};
MeasuredGap measured_gap(const GapRow& row);

}  // namespace fitting

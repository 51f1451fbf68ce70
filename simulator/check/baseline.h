#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/check/check.h"

namespace simulator {

// How much worse an error may get, as absolute differences of relative errors. Predictions are the same on every machine: no
// slack is for noise, all of it for a refit that moves a row or two a little for the good of the others. Medians and means of
// a source move less than its rows do.
struct Tolerances {
  double time = 0.01, memory = 0.01;  // of a row
  double summary = 0.005;             // of medians and means, of both
};

// Errors of an earlier check that later ones are held to: of rows, and medians and means of
// sources.
struct Baseline {
  struct Row {
    std::optional<double> step_time_error, memory_error;
    std::string fits;  // predicted: yes, borderline, no; "" of a row that is skipped
    bool operator==(const Row&) const = default;
  };
  struct Errors {
    double median = 0.0, mean = 0.0;
    bool operator==(const Errors&) const = default;
  };
  struct Source {
    std::optional<Errors> step_time, memory;
    bool operator==(const Source&) const = default;
  };
  std::string reason;  // why it was last written
  Tolerances tolerances;
  std::map<std::string, Row> rows;        // by id, those that are predicted
  std::map<std::string, Source> sources;  // by source, and "all"
};

Baseline baseline_of(const std::vector<CheckedRow>& rows,
                     std::string reason,
                     Tolerances tolerances);
std::string to_json(const Baseline& baseline);  // errors to six digits
// Throws InputError naming file and key.
Baseline read_baseline(const std::filesystem::path& file);

// What got worse than the tolerances allow, one sentence each: errors of rows and sources, verdicts
// that turned from right to wrong, rows of the baseline that are skipped or missing now. `remarks`
// are for predicted rows that the baseline does not have.
struct Comparison {
  std::vector<std::string> failures, remarks;
};
Comparison compare_with(const Baseline& baseline,
                        const std::vector<CheckedRow>& rows,
                        Tolerances tolerances);

}  // namespace simulator

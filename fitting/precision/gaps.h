#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fitting/precision/gap_prediction.h"

namespace fitting {

// A published gap against the predicted one.
struct ComparedGap {
  GapRow row;
  PredictedGap predicted;
  std::string unit;                      // of `measured` and `range`: %, nats or points
  double measured = 0.0;
  GapRange range;                        // predicted
  std::optional<double> measured_nats;   // beside %
  std::optional<double> ratio;           // predicted / measured; nothing for bounds, and where either is not above zero
  bool bound = false;                    // measured is a bound
  bool inside = false;                   // measured lies in the range; of a bound: the predicted value keeps it
};

// A row that cannot be compared.
struct SkippedGap {
  std::string id, why;
  int line = 0;
};

// Of predicted / measured.
struct RatioSummary {
  std::size_t rows = 0;
  double median = 0.0, rms_factor = 0.0;   // exp of the root mean square of ln ratio
};
RatioSummary summary_of(std::vector<double> ratios);

struct GapGroup {
  std::string name;
  std::size_t rows = 0, values = 0, inside = 0, bounds = 0, bounds_kept = 0;
  RatioSummary ratios, kumar, sun, chen, eff_64;
};

struct GapReport {
  std::string file;
  std::vector<ComparedGap> compared;
  std::vector<SkippedGap> skipped;
  std::vector<GapGroup> groups;
};

// Compares every row of a table or says why it cannot.
GapReport compare_gaps(const std::filesystem::path& file);
GapReport compare_gaps(const std::vector<GapRow>& rows, std::string file);

}  // namespace fitting

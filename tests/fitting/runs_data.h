#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/io/data_dir.h"
#include "fitting/runs/runs.h"

namespace fitting {

// Runs of data/runs as rows of a law.
inline Runs runs_of_data(const Law& law, const std::string& file, std::int64_t drop_highest = 0) {
  RunOptions options;
  options.drop_highest = drop_highest;
  return read_runs(law, {core::data_dir() / "runs" / file}, options);
}

}  // namespace fitting

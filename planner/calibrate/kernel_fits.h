#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/calibrate/parameters.h"

namespace planner {

// Which rows of measured tables inform a fit, and what each counts.
struct RowChoice {
  std::string kind;                 // of kernel_kinds()
  std::vector<std::string> tables;  // file names; at least one must be there
  // By column: the texts that a row may have, those it may not, the least number.
  std::map<std::string, std::vector<std::string>> where, without;
  std::map<std::string, double> at_least;
  // Columns that name what shares a cause of errors, up to the first blank or comma; the first that a
  // table has counts.
  std::vector<std::string> source;
  struct Lighter {
    std::string column;
    double below = 0.0, weight = 0.0;
  };
  std::optional<Lighter> lighter;  // rows that count less
};

// One fit of a few numbers of data/curves to kernels or collectives.
struct KernelFit {
  std::string name;  // "GEMM, Ampere"
  RowChoice rows;
  CalibrationSpec spec;
};

// Reads data/calibration/kernels.json. Throws InputError naming file and key.
std::vector<KernelFit> read_kernel_fits(const std::filesystem::path& file);

}  // namespace planner

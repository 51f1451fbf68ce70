#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/calibrate/calibrate.h"

namespace planner {

// The texts of the files below a data folder with the fitted numbers of all parameters that rows
// touch, each with a source that names the command, its tables, rows and left-out error. All else
// stays byte for byte, and the same calibration gives the same texts from its own result.
struct DataText {
  std::string file;  // "curves/hopper.json"
  std::string text;
};
std::vector<DataText> written(const Calibration& calibration,
                              const std::filesystem::path& data,
                              const std::vector<std::string>& tables);

// Writes those texts over their files. Throws InputError where a file cannot be written.
void write_data(const std::vector<DataText>& texts, const std::filesystem::path& data);

}  // namespace planner

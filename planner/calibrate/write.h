#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "planner/calibrate/calibrate.h"

namespace planner {

// A file below a data folder: "curves/hopper.json".
struct DataText {
  std::string file;
  std::string text;
};

// The texts of the files below a data folder with the numbers that calibrations fitted, all parameters
// that rows touch. Each figure has a source that names the command, rows and error. All else stays byte
// for byte, and the same calibrations give the same texts from their own result.
class DataTexts {
 public:
  explicit DataTexts(std::filesystem::path data) : data_(std::move(data)) {}

  // `command` says how the numbers were made: "simulate calibrate runs.csv".
  void put(const Calibration& calibration, const std::string& command);
  std::vector<DataText> changed() const;

 private:
  std::string& text_of(const std::string& file);

  std::filesystem::path data_;
  std::map<std::string, std::string> texts_;
};

// The same of one calibration.
std::vector<DataText> written(const Calibration& calibration,
                              const std::filesystem::path& data,
                              const std::string& command);

// Writes those texts over their files. Throws InputError where a file cannot be written.
void write_data(const std::vector<DataText>& texts, const std::filesystem::path& data);

}  // namespace planner

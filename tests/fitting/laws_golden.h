#pragma once

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace fitting {

// A row of tests/published/laws_golden.csv: what a set of constants gives at a point.
struct GoldenValue {
  std::string set, quantity;
  std::map<std::string, double> at;
  double value = 0.0;

  std::string text() const { return set + " " + quantity + " " + at_text; }
  std::string at_text;
};

inline std::vector<GoldenValue> golden_values() {
  std::ifstream file(FORETRAIN_SOURCE_DIR "/tests/published/laws_golden.csv");
  std::vector<GoldenValue> rows;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line.front() == '#' || line.rfind("set,", 0) == 0) continue;
    auto& row = rows.emplace_back();
    std::istringstream cells(line);
    std::string value, pair;
    std::getline(cells, row.set, ',');
    std::getline(cells, row.quantity, ',');
    std::getline(cells, row.at_text, ',');
    std::getline(cells, value);
    row.value = std::stod(value);
    std::istringstream pairs(row.at_text);
    while (pairs >> pair) row.at[pair.substr(0, pair.find('='))] = std::stod(pair.substr(pair.find('=') + 1));
  }
  return rows;
}

}  // namespace fitting

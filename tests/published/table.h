#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace published {

// Rows of data/measured/NAME below the header, each of `columns` cells; cells have no commas, but for the last.
inline std::vector<std::vector<std::string>> rows_of(const std::string& name, std::size_t columns) {
  std::ifstream file(FORETRAIN_SOURCE_DIR "/data/measured/" + name);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    auto& row = rows.emplace_back(columns);
    for (std::size_t i = 0; i + 1 < columns; ++i) std::getline(cells, row[i], ',');
    std::getline(cells, row.back());
  }
  return rows;
}

}  // namespace published

#include "fitting/runs/best_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace fitting {
namespace {

// Rows of equal N, D and variables, in the order in which they first stand.
std::map<std::vector<double>, std::vector<std::size_t>> cells_of(const Runs& runs) {
  std::map<std::vector<double>, std::vector<std::size_t>> cells;
  for (std::size_t i = 0; i < runs.rows.size(); ++i) {
    std::vector<double> key;
    for (const auto& column : runs.rows.columns) key.push_back(column[i]);
    for (const auto* name : {"N", "D"}) {
      const auto* values = runs.observations.find(name);
      key.push_back(values == nullptr || std::isnan((*values)[i]) ? std::numeric_limits<double>::lowest() : (*values)[i]);
    }
    cells[key].push_back(i);
  }
  return cells;
}

}  // namespace

void take_best_settings(const Law& law, double share, Runs& runs) {
  const auto* losses = runs.observations.find("L");
  if (losses == nullptr) return;
  const auto cells = cells_of(runs);
  if (cells.size() == runs.rows.size()) return;
  auto& read = runs.observations;
  std::vector<bool> keep(runs.rows.size(), false);
  std::vector<std::string> names = read.rows;
  for (const auto& [key, rows] : cells) {
    double best = std::numeric_limits<double>::infinity();
    for (const auto i : rows) {
      if ((*losses)[i] < best) best = (*losses)[i];
    }
    std::vector<std::size_t> near;
    for (const auto i : rows) {
      if ((*losses)[i] <= best * (1.0 + share)) near.push_back(i);
      else read.dropped.push_back({names[i], fmt::format("its loss is more than {:g} % above the {:.5g} of the best of its N and D", 100.0 * share, best)});
    }
    if (near.empty()) continue;
    double sum = 0.0;
    for (const auto i : near) sum += std::log(runs.rows.measured[i]);
    runs.rows.measured[near.front()] = std::exp(sum / static_cast<double>(near.size()));
    keep[near.front()] = true;
    for (std::size_t j = 1; j < near.size(); ++j) read.dropped.push_back({names[near[j]], fmt::format("in the mean of {}", names[near.front()])});
    if (near.size() > 1) read.rows[near.front()] += fmt::format(" and {} more", near.size() - 1);
  }
  read.notes.push_back(fmt::format("{} <- the mean of runs within {:g} % of the least L of their N and D: {} of them (--near-best)", law.output,
                                   100.0 * share, cells.size()));
  keep_rows(runs, keep);
}

}  // namespace fitting

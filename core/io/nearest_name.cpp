#include <algorithm>
#include <array>

#include "core/io/document.h"

namespace core {
namespace {

constexpr std::size_t longest_compared = 64;

// Edits (insert, delete, replace, swap of neighbours) between two words: the restricted
// Damerau-Levenshtein distance, row by row.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<std::vector<std::size_t>, 3> rows;
  rows.fill(std::vector<std::size_t>(b.size() + 1));
  for (std::size_t j = 0; j <= b.size(); ++j) {
    rows[0][j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i - 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], rows[(i - 2) % 3][j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view name,
                                        const std::vector<std::string>& known) {
  if (name.empty() || name.size() > longest_compared) {
    return std::nullopt;
  }
  std::optional<std::string> nearest;
  std::size_t best = std::max<std::size_t>(1, name.size() / 4) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > longest_compared) {
      continue;
    }
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best && distance < candidate.size()) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace core

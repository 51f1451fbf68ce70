#include "fitting/runs/run_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace fitting {
namespace {

// Fewer are in thousands, millions or billions: the smallest runs of any law had 768 parameters, but never all of them.
struct Unit {
  const char *variable, *words, *column;
  double least;
};
constexpr Unit units[] = {{"N", "parameters", "params_M or \"params (B)\"", 1e5},
                          {"D", "tokens", "tokens_B or \"tokens (M)\"", 1e6},
                          {"C", "FLOPs", "pf_days or train_gflops", 1e12}};

constexpr double most_nats = 12.5;              // a guess among a vocabulary of 2^18
constexpr std::size_t many_points = 16;         // of tokens of one size: more than anybody trains to the end

const std::vector<double>* column(const Law& law, const Rows& rows, const std::string& name) {
  if (law.output == name) return &rows.measured;
  for (std::size_t v = 0; v < law.variables.size(); ++v) {
    if (law.variables[v].name == name) return &rows.columns[v];
  }
  return nullptr;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Tokens of one size that differ by more than 2 %.
std::size_t distinct(std::vector<double>& tokens) {
  std::sort(tokens.begin(), tokens.end());
  std::size_t count = 0;
  double last = 0.0;
  for (const double d : tokens) {
    if (d > 1.02 * last) ++count, last = d;
  }
  return count;
}

void along_runs(const std::vector<double>& N, const std::vector<double>& D, std::vector<std::string>& warnings) {
  std::map<double, std::vector<double>> of_size;
  for (std::size_t i = 0; i < N.size(); ++i) of_size[N[i]].push_back(D[i]);
  std::vector<double> counts;
  for (auto& [size, tokens] : of_size) counts.push_back(static_cast<double>(distinct(tokens)));
  const double typical = median(counts);
  if (typical < static_cast<double>(many_points)) return;
  warnings.push_back(fmt::format("{} sizes with {:.0f} token counts each: points along runs? Losses in the middle of a schedule are higher than at the "
                                 "end of one of that length; fit final losses (--where), or one run's curve (loss-curve --along)",
                                 of_size.size(), typical));
}

}  // namespace

std::vector<std::string> warnings_of_rows(const Law& law, const Rows& rows) {
  std::vector<std::string> warnings;
  for (const auto& unit : units) {
    const auto* values = column(law, rows, unit.variable);
    if (values == nullptr || values->empty()) continue;
    const double most = *std::max_element(values->begin(), values->end());
    if (most >= unit.least) continue;
    warnings.push_back(fmt::format("{} is at most {:g}, expected {}: a column called {} would be read with its unit", unit.variable, most, unit.words, unit.column));
  }
  const auto *N = column(law, rows, "N"), *D = column(law, rows, "D");
  if (law.output != "L" || rows.size() == 0) return warnings;
  const double loss = median(rows.measured);
  if (loss > most_nats) warnings.push_back(fmt::format("L is {:.3g} at the median, expected nats a token: a perplexity?", loss));
  if (N != nullptr && D != nullptr) along_runs(*N, *D, warnings);
  return warnings;
}

}  // namespace fitting

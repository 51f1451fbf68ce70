#include "planner/budget/loss.h"

#include <cmath>

#include "core/error.h"

namespace planner {

namespace {

constexpr double fewest_tokens = 1.0, most_tokens = 1e20;
constexpr int bisections = 60;

}  // namespace

std::string_view name_of(LossModel::Counts counts) {
  switch (counts) {
    case LossModel::Counts::total: return "total";
    case LossModel::Counts::nonemb: return "nonemb";
    case LossModel::Counts::active: return "active";
  }
  CORE_ASSERT(false);
}

double counted(LossModel::Counts counts, const core::ParameterCount& p) {
  switch (counts) {
    case LossModel::Counts::total: return static_cast<double>(p.total);
    case LossModel::Counts::nonemb: return static_cast<double>(p.total - p.embedding - p.output);
    case LossModel::Counts::active: return static_cast<double>(p.active);
  }
  CORE_ASSERT(false);
}

double optimal_parameters(const LossModel::Function& loss, double D) {
  // With C fixed the loss changes with ln N as the left side less the right one: below the optimum it falls.
  const auto falls = [&](double N) {
    constexpr double step = 1.0 + 1e-4;
    return loss(N * step, D / step, D / step) < loss(N / step, D * step, D * step);
  };
  double low = std::log(1e3), high = std::log(1e18);
  for (int i = 0; i < bisections; ++i) {
    const double middle = 0.5 * (low + high);
    (falls(std::exp(middle)) ? low : high) = middle;
  }
  return std::exp(0.5 * (low + high));
}

std::optional<double> tokens_for_loss(const LossModel::Function& loss, double N, std::optional<double> unique, double target) {
  const auto reaches = [&](double D) { return loss(N, D, distinct(D, unique)) <= target; };
  if (!reaches(most_tokens)) return std::nullopt;
  double low = std::log(fewest_tokens), high = std::log(most_tokens);
  for (int i = 0; i < bisections; ++i) {
    const double middle = 0.5 * (low + high);
    (reaches(std::exp(middle)) ? high : low) = middle;
  }
  return std::exp(low);
}

}  // namespace planner

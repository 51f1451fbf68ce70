#include "planner/budget/means.h"

#include <limits>

#include "core/error.h"

namespace planner {

namespace {

constexpr double seconds_a_day = 86400.0, hours_a_day = 24.0;

double serving_gpu_days(const Means& m, double N) {
  if (m.serving.tokens == 0.0) return 0.0;
  return 2.0 * N * m.serving.tokens / m.serving.flops_per_s / seconds_a_day;
}

// GPU-days that training may take; of a budget in FLOPs, none is set.
double training_gpu_days(const Means& m, double N) {
  if (m.budget.kind == Budget::Kind::days) {
    return m.budget.amount * static_cast<double>(m.gpus) - serving_gpu_days(m, N);
  }
  CORE_ASSERT(m.budget.kind == Budget::Kind::usd && m.usd_per_gpu_hour);
  return m.budget.amount / (*m.usd_per_gpu_hour * hours_a_day) - serving_gpu_days(m, N);
}

double tokens_of_flops(const Means& m, double N) { return (m.budget.amount / N - 2.0 * m.serving.tokens) / 6.0; }

}  // namespace

std::string_view name_of(Budget::Kind kind) {
  switch (kind) {
    case Budget::Kind::days: return "days";
    case Budget::Kind::usd: return "usd";
    case Budget::Kind::flops: return "flops";
  }
  CORE_ASSERT(false);
}

std::optional<Training> training_for(const Means& m, double N, double step_s) {
  const auto gpus = static_cast<double>(m.gpus);
  Training t;
  if (m.budget.kind == Budget::Kind::flops) {
    t.tokens = tokens_of_flops(m, N);
    t.days = t.tokens / m.tokens_per_step * step_s / seconds_a_day;
  } else {
    t.days = training_gpu_days(m, N) / gpus;
    t.tokens = t.days * seconds_a_day / step_s * m.tokens_per_step;
  }
  if (!(t.tokens > 0.0)) return std::nullopt;
  t.flops = 6.0 * N * t.tokens;
  t.serving_gpu_days = serving_gpu_days(m, N);
  if (m.usd_per_gpu_hour) {
    t.serving_usd = t.serving_gpu_days * hours_a_day * *m.usd_per_gpu_hour;
    t.usd = t.days * gpus * hours_a_day * *m.usd_per_gpu_hour + *t.serving_usd;
  }
  return t;
}

double longest_step(const Means& m, double N, double tokens) {
  if (m.budget.kind == Budget::Kind::flops) {
    return tokens_of_flops(m, N) >= tokens ? std::numeric_limits<double>::infinity() : 0.0;
  }
  const double days = training_gpu_days(m, N) / static_cast<double>(m.gpus);
  return days > 0.0 ? days * seconds_a_day * m.tokens_per_step / tokens : 0.0;
}

}  // namespace planner

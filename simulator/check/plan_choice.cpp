#include "simulator/check/plan_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"

namespace simulator {

namespace {

struct Plan {
  double predicted = 0.0, measured = 0.0;
  std::size_t times = 0;
};

std::string question_of(const CheckedRow& row) {
  const auto& run = row.run;
  const auto text = [](const auto& value) {
    return value ? fmt::format("{}", *value) : std::string("-");
  };
  return fmt::format("{}x{}, {} heads, sequence {}, {} x {}, batch {}, {}",
                     text(run.layers),
                     text(run.hidden),
                     text(run.heads),
                     row.sequence,
                     text(run.gpus),
                     row.gpu,
                     text(run.global_batch_sequences),
                     row.recipe);
}

PlanGroup judge(const std::string& source, const std::string& what, std::vector<Plan> plans) {
  std::stable_sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
    return a.predicted < b.predicted;
  });
  std::vector<double> predicted, measured;
  for (const auto& plan : plans)
    predicted.push_back(plan.predicted), measured.push_back(plan.measured);
  const double fastest = *std::min_element(measured.begin(), measured.end());
  const double of_three = *std::min_element(
      measured.begin(), measured.begin() + std::min<std::ptrdiff_t>(3, std::ssize(measured)));
  return {.source = source,
          .what = what,
          .plans = plans.size(),
          .first_extra = measured.front() / fastest - 1.0,
          .best_of_three_extra = of_three / fastest - 1.0,
          .fastest_in_first_three = of_three <= fastest,
          .kendall_tau = kendall_tau(predicted, measured)};
}

}  // namespace

double kendall_tau(const std::vector<double>& a, const std::vector<double>& b) {
  CORE_ASSERT(a.size() == b.size());
  double together = 0.0, pairs_a = 0.0, pairs_b = 0.0;
  const auto sign = [](double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0; };
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = i + 1; j < a.size(); ++j) {
      const double in_a = sign(a[i] - a[j]), in_b = sign(b[i] - b[j]);
      together += in_a * in_b;
      pairs_a += std::abs(in_a);
      pairs_b += std::abs(in_b);
    }
  }
  return pairs_a > 0.0 && pairs_b > 0.0 ? together / std::sqrt(pairs_a * pairs_b) : 0.0;
}

std::vector<PlanGroup> plan_groups(const std::vector<CheckedRow>& rows, std::size_t least) {
  using Key = std::pair<std::string, std::string>;
  std::map<Key, std::map<std::string, Plan>> groups;
  std::vector<Key> order;
  for (const auto& row : rows) {
    if (!row.step_time_error) continue;
    const Key key{row.source, question_of(row)};
    if (!groups.contains(key)) order.push_back(key);
    Plan& plan = groups[key][row.plan];
    plan.predicted = row.predicted->step_time_s;
    plan.measured += *row.measured->step_time_s;
    ++plan.times;
  }
  std::vector<PlanGroup> out;
  for (const auto& key : order) {
    std::vector<Plan> plans;
    for (auto& [text, plan] : groups[key]) {
      plan.measured /= static_cast<double>(plan.times);
      plans.push_back(plan);
    }
    if (plans.size() >= least) out.push_back(judge(key.first, key.second, std::move(plans)));
  }
  return out;
}

}  // namespace simulator

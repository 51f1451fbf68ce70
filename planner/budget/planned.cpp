#include "planner/budget/planned.h"

#include <algorithm>

#include "core/error.h"
#include "planner/answer.h"
#include "planner/search.h"

namespace planner {

namespace {

// A plan's time at the grain of answers is no less than so much of its time at cell grain, by which the search compares (within
// 1.5 %: tests/simulator/grain_test.cpp).
constexpr double least_over_cell = 0.985;
constexpr double longest_limit_s = 1e6;  // longer ones say nothing

core::SimTime cell_limit(double seconds) { return core::to_sim_time(core::Seconds{seconds / least_over_cell}); }

Throughput throughput_of(const simulator::StepReport& r) {
  Throughput t;
  t.plan = r.plan;
  t.step_s = r.step_time_s, t.low_s = r.low_s, t.high_s = r.high_s;
  t.interval_because = r.interval_because;
  t.mfu = r.mfu, t.tokens_per_s_per_gpu = r.tokens_per_s_per_gpu, t.peak_memory_GiB = r.peak_memory_GiB;
  t.fits = r.fits;
  return t;
}

double peak_of_16_bits(const simulator::Setting& setting) {
  return setting.cluster.gpu.peak(setting.recipe.compute_format)->value;
}

double fastest_peak(const simulator::Setting& setting) {
  double peak = peak_of_16_bits(setting);
  for (const auto& format : setting.recipe.rates()) peak = std::max(peak, setting.cluster.gpu.peak(format)->value);
  return peak;
}

}  // namespace

double peak_over_16_bits(const simulator::Setting& setting) { return fastest_peak(setting) / peak_of_16_bits(setting); }

double expected_speed(const simulator::Setting& setting) {
  constexpr double in_linear_layers = 0.75;
  return 1.0 / (1.0 - in_linear_layers + in_linear_layers / peak_over_16_bits(setting));
}

double least_step(const simulator::Setting& setting, const core::ModelSpec& model, std::int64_t global_batch) {
  constexpr double forward_and_backward = 3.0;
  const double tokens = static_cast<double>(global_batch * setting.seq);
  const double flops = forward_and_backward * tokens * core::flops_per_token_forward(model, setting.seq, true);
  return flops / static_cast<double>(setting.gpus) / fastest_peak(setting);
}

PlannedTimes::PlannedTimes(std::vector<PoolSetting> pools, std::vector<core::ModelSpec> models)
    : pools_(std::move(pools)), models_(std::move(models)) {
  for (const auto& pool : pools_) {
    for (const auto& model : models_) least_.push_back(least_step(pool.setting, model, pool.request.global_batch));
  }
}

StepTimes PlannedTimes::times() const {
  return {[this](std::size_t pool, std::size_t size, std::optional<double> limit) { return best(pool, size, limit); },
          [this](std::size_t pool, std::size_t size) { return least(pool, size); },
          [this](std::size_t pool, std::size_t size) { return expected(pool, size); }};
}

double PlannedTimes::least(std::size_t pool, std::size_t size) const { return least_[pool * models_.size() + size]; }

double PlannedTimes::expected(std::size_t pool, std::size_t size) const {
  const auto& setting = pools_[pool].setting;
  return least(pool, size) * peak_over_16_bits(setting) / (expected_mfu * expected_speed(setting));
}

std::optional<Throughput> PlannedTimes::best(std::size_t pool, std::size_t size, std::optional<double> limit) const {
  const auto& request = pools_[pool].request;
  auto setting = pools_[pool].setting;
  setting.model = models_[size];
  const simulator::Bench bench(setting);
  Question question;
  question.model = &setting.model;
  question.gpus = request.gpus, question.global_batch = request.global_batch, question.seq = setting.seq;
  question.recipe = setting.recipe.name;
  question.fixed = core::parse_plan("", "--fix");
  question.gpus_per_node = setting.gpus_together();
  question.dispatch = best_dispatch(bench.curves());
  SearchOptions options;
  options.keep = 1;
  if (limit && *limit < longest_limit_s) options.no_slower_than = cell_limit(*limit);
  const auto found = search(setting, bench, question, axes_of(question), options);
  const auto plans = refine(setting, bench, found.best, 1);
  if (plans.empty() || (limit && plans.front().step_time_s > *limit)) return std::nullopt;
  return throughput_of(plans.front());
}

}  // namespace planner

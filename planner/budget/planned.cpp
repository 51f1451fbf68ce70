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

namespace {

constexpr double forward_and_backward = 3.0;

double gpu_tokens(const simulator::Setting& setting, std::int64_t global_batch) {
  return static_cast<double>(global_batch * setting.seq) / static_cast<double>(setting.gpus);
}

// The most FLOP/s that any GEMM of a format reaches.
double fastest_gemm(const simulator::Curves& curves, const std::string& format) {
  const auto& tiles = curves.list("gemm.tiles");
  double surcharge = 1.0;
  for (std::size_t i = 0; i + 1 < tiles.size(); i += 2) {
    surcharge = std::min(surcharge, 1.0 + curves.at("gemm.tile_perimeter") * (1.0 / tiles[i] + 1.0 / tiles[i + 1] - 1.0 / 128 - 1.0 / 256));
  }
  const double held = std::max(1.0, curves.find("sustained.rate").value_or(1.0));
  return curves.at("gemm." + format + ".efficiency") * curves.gpu().peak(format)->value * held / surcharge;
}

}  // namespace

double step_at_peak(const simulator::Setting& setting, const core::ModelSpec& model, std::int64_t global_batch) {
  const double flops = forward_and_backward * core::flops_per_token_forward(model, setting.seq, true);
  return gpu_tokens(setting, global_batch) * flops / fastest_peak(setting);
}

double least_step(const simulator::Setting& setting, const simulator::Curves& curves, const core::ModelSpec& model,
                  std::int64_t global_batch) {
  double rate = fastest_gemm(curves, setting.recipe.compute_format);
  for (const auto& format : setting.recipe.rates()) rate = std::max(rate, fastest_gemm(curves, format));
  const auto flops = [&](std::int64_t seq) { return core::flops_per_token_forward(model, seq, true); };
  // A sequence of one token has hardly any attention: twice what a second token adds takes it off.
  const double weights = std::max(0.0, flops(1) - 2.0 * std::max(0.0, flops(2) - flops(1)));
  const double attention = std::max(0.0, flops(setting.seq) - flops(1));
  return gpu_tokens(setting, global_batch) * forward_and_backward * (weights / rate + attention / fastest_peak(setting));
}

PlannedTimes::PlannedTimes(std::vector<PoolSetting> pools, std::vector<core::ModelSpec> models)
    : pools_(std::move(pools)), models_(std::move(models)) {
  CORE_ASSERT(!models_.empty());
  for (const auto& pool : pools_) {
    auto setting = pool.setting;
    setting.model = models_.front();
    const simulator::Bench bench(setting);
    for (const auto& model : models_) {
      least_.push_back(least_step(setting, bench.curves(), model, pool.request.global_batch));
      at_peak_.push_back(step_at_peak(setting, model, pool.request.global_batch));
    }
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
  return at_peak_[pool * models_.size() + size] * peak_over_16_bits(setting) / (expected_mfu * expected_speed(setting));
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

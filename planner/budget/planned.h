#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/budget/choose.h"
#include "simulator/cost/cost.h"
#include "simulator/request.h"

namespace planner {

// The machine of a pool: a number of GPUs and a recipe, as a setting that waits for a model.
struct PoolSetting {
  simulator::Request request;
  simulator::Setting setting;
};

// Step times by the search over all legal plans: its best plan at cell grain, simulated at the grain of answers.
class PlannedTimes {
 public:
  PlannedTimes(std::vector<PoolSetting> pools, std::vector<core::ModelSpec> models);

  StepTimes times() const;  // that read this object
  const PoolSetting& pool(std::size_t i) const { return pools_[i]; }

 private:
  std::optional<Throughput> best(std::size_t pool, std::size_t size, std::optional<double> no_slower_than_s) const;
  double least(std::size_t pool, std::size_t size) const;
  double expected(std::size_t pool, std::size_t size) const;

  std::vector<PoolSetting> pools_;
  std::vector<core::ModelSpec> models_;
  std::vector<double> least_, at_peak_;  // by pool, then size
};

// The dense peak of the recipe's fastest format over that of 16 bits.
double peak_over_16_bits(const simulator::Setting& setting);
// What a recipe is expected to gain end to end where three quarters of a 16-bit step are matrices of linear layers (an
// assumption; Amdahl's law): 1 / (1/4 + 3/4 / peak_over_16_bits).
double expected_speed(const simulator::Setting& setting);
constexpr double expected_mfu = 0.4;  // of 16 bits

// Model FLOPs of a step, attention over the keys that a query meets, at the GPUs' dense peak of the recipe's fastest format.
double step_at_peak(const simulator::Setting& setting, const core::ModelSpec& model, std::int64_t global_batch);

// A bound of the step times of all plans: FLOPs of weights at the rate that the GEMM curve of the recipe's fastest format does not
// pass for any shape (simulator/cost/kernels/gemm.cpp: waves are no fewer than tiles over SMs, so time >= 2 m n k s / (efficiency
// peak), s the tiles' least surcharge), those of attention at the dense peak; nothing else takes time.
double least_step(const simulator::Setting& setting, const simulator::Curves& curves, const core::ModelSpec& model,
                  std::int64_t global_batch);

}  // namespace planner

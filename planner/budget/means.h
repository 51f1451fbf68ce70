#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace planner {

// What may be spent: days of all GPUs, dollars, or training FLOPs (6 FLOPs a parameter and token).
struct Budget {
  enum class Kind : std::uint8_t { days, usd, flops };
  Kind kind = Kind::days;
  double amount = 0.0;
};
std::string_view name_of(Budget::Kind kind);

// Tokens that the model will serve, paid for from the same budget at 2 FLOPs a parameter and token (Sardana et al. 2024, arXiv
// 2401.00448, Eq. 3 and 6).
struct Serving {
  double tokens = 0.0;
  double flops_per_s = 0.0;  // of a GPU that serves: its peak times its MFU
};

// A budget on a number of GPUs. With nothing to serve GPUs may have no price, unless the budget is in dollars.
struct Means {
  Budget budget;
  std::int64_t gpus = 1;
  double tokens_per_step = 0.0;
  std::optional<double> usd_per_gpu_hour;
  Serving serving;
};

// A training that uses a budget up, with what is kept for serving.
struct Training {
  double tokens = 0.0, days = 0.0, flops = 0.0;
  std::optional<double> usd;  // training and serving
  double serving_gpu_days = 0.0;
  std::optional<double> serving_usd;
};

// What a budget buys for a model of so many active parameters whose step takes so long. Nothing where serving takes it all.
//   days:  tokens = (days - serving GPU-days / gpus) / step time x tokens a step
//   usd:   the same, with days = usd / (24 price gpus)
//   flops: tokens = (C / N - 2 D_served) / 6
std::optional<Training> training_for(const Means& means, double active_parameters, double step_s);

// The longest step with which a budget buys so many tokens; infinite where steps do not matter, 0 where none does.
double longest_step(const Means& means, double active_parameters, double tokens);

}  // namespace planner

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model.h"

namespace planner {

// A scaling law as a budget uses it: loss in nats a token of N parameters after D tokens, U of them distinct (U <= D). Loss
// must not rise with D.
struct LossModel {
  using Function = std::function<double(double N, double D, double U)>;
  enum class Counts : std::uint8_t { total, nonemb, active };  // what N counts
  struct Range {
    double low = 0.0, high = 0.0;
  };

  std::string name, source, formula;
  Counts counts = Counts::total;
  bool knows_repeats = false;  // the law itself has U; others need with_repeats
  Function loss;
  std::vector<Function> draws;                         // other laws that the same runs might have given: of a bootstrap
  std::optional<Range> N, D, C, tokens_per_parameter;  // of the runs that it was fitted on
  std::vector<std::string> warnings;
};
std::string_view name_of(LossModel::Counts counts);

// N of a model as a law counts it. Not embedding: without tables and the output layer.
double counted(LossModel::Counts counts, const core::ParameterCount& parameters);

// The number of parameters of which D tokens are the compute-optimal number, C = 6 N D: where dL/dln N = dL/dln D.
double optimal_parameters(const LossModel::Function& loss, double D);

// Fewest tokens with which the loss is at most `target`; nothing where no number of tokens does (up to 1e20). `unique`: tokens
// that there are, further ones repeat them.
std::optional<double> tokens_for_loss(const LossModel::Function& loss, double N, std::optional<double> unique, double target);

// Distinct ones of D training tokens.
inline double distinct(double D, std::optional<double> unique) { return unique && *unique < D ? *unique : D; }

}  // namespace planner

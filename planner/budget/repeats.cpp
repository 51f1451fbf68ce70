#include "planner/budget/repeats.h"

#include <cmath>

#include "core/hardware/figures.h"
#include "core/io/data_dir.h"

namespace planner {

namespace {

// What so many of a thing, `unique` of them at their full worth, are worth together.
double worth(double all, double unique, double scale) {
  const double repeats = all / unique - 1.0;
  return unique + unique * scale * -std::expm1(-repeats / scale);
}

LossModel::Function repeated(const LossModel::Function& base, const RepeatConstants& constants) {
  return [base, constants](double N, double D, double U) {
    const double optimal = optimal_parameters(base, U);
    const double D_worth = worth(D, U, constants.tokens);
    return base(worth(N, std::min(N, optimal), constants.parameters), D_worth, D_worth);
  };
}

RepeatConstants constants_in(const core::Document& pair) {
  RepeatConstants out{pair.at("tokens").as_positive_real(), pair.at("parameters").as_positive_real()};
  pair.reject_unknown({"tokens", "parameters"});
  return out;
}

}  // namespace

Repeats load_repeats() {
  const auto file = core::Document::read_json_file(core::data_dir() / "repeats.json");
  Repeats out;
  out.constants = constants_in(file.at("constants"));
  for (const auto& other : file.at("others").as_list()) out.others.push_back(constants_in(other));
  out.source = file.at("source").as_text();
  out.warning = file.at("warning").as_text();
  file.reject_unknown({"constants", "others", "source", "warning"});
  return out;
}

LossModel with_repeats(const LossModel& base, const RepeatConstants& constants) {
  LossModel out = base;
  out.loss = repeated(base.loss, constants);
  for (auto& draw : out.draws) draw = repeated(draw, constants);
  return out;
}

}  // namespace planner

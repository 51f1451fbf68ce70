#include "planner/budget/law.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "core/error.h"
#include "fitting/fitted_law.h"

namespace planner {

namespace {

// A law's function with the places of N, D and U among its variables; the others hold still.
struct Placed {
  fitting::LawFunction function;
  std::vector<double> variables;
  std::size_t N = 0, D = 0;
  std::optional<std::size_t> U;

  double value(const std::vector<double>& parameters, double n, double d, double u) const {
    auto v = variables;
    v[N] = n, v[D] = d;
    if (U) v[*U] = u;
    return function.value(parameters, v);
  }
};

std::optional<std::size_t> place_of(const fitting::Law& law, const std::string& symbol) {
  const auto at = std::find_if(law.variables.begin(), law.variables.end(), [&](const auto& v) { return v.name == symbol; });
  if (at == law.variables.end()) return std::nullopt;
  return static_cast<std::size_t>(at - law.variables.begin());
}

std::shared_ptr<const Placed> placed(const fitting::FittedLaw& law, const std::string& flag) {
  const auto N = place_of(law.law, "N"), D = place_of(law.law, "D");
  if (!N || !D || law.law.output != "L") {
    throw core::InputError(fmt::format("{}: {} is {} of {}; expected a law of the loss L of N and D", flag, law.law.name,
                                       law.law.output, law.law.formula));
  }
  Placed out{fitting::LawFunction(law.law), {}, *N, *D, place_of(law.law, "U")};
  for (const auto& variable : law.law.variables) {
    const bool given = variable.name == "N" || variable.name == "D" || variable.name == "U";
    if (!given && !variable.otherwise) {
      throw core::InputError(fmt::format("{}: {} asks for {} ({}), which a budget does not have", flag, law.law.name,
                                         variable.name, variable.meaning));
    }
    out.variables.push_back(given ? 0.0 : *variable.otherwise);
  }
  return std::make_shared<const Placed>(std::move(out));
}

LossModel::Counts counts_of(const fitting::FittedLaw& law, const std::string& flag) {
  if (law.counts == "total" || law.counts.empty()) return LossModel::Counts::total;
  if (law.counts == "nonemb") return LossModel::Counts::nonemb;
  if (law.counts == "active") return LossModel::Counts::active;
  throw core::InputError(fmt::format("{}: counts: found \"{}\", expected total, nonemb or active: what its N counts", flag,
                                     core::printable(law.counts)));
}

std::optional<LossModel::Range> range_of(const fitting::FittedLaw& law, const std::string& symbol) {
  const auto found = law.range.find(symbol);
  if (found == law.range.end()) return std::nullopt;
  return LossModel::Range{found->second.low, found->second.high};
}

}  // namespace

LossModel loss_model_of(const std::string& name) {
  const auto flag = "--law " + name;
  const auto law = fitting::fitted_law(name);
  const auto function = placed(law, flag);
  const auto with = [&](const std::vector<double>& parameters) {
    return [function, parameters](double N, double D, double U) { return function->value(parameters, N, D, U); };
  };
  LossModel model;
  model.name = law.name;
  model.source = law.source;
  model.formula = law.law.formula;
  model.counts = counts_of(law, flag);
  model.knows_repeats = function->U.has_value();
  model.loss = with(law.parameters);
  for (const auto& draw : law.draws) model.draws.push_back(with(draw));
  model.N = range_of(law, "N"), model.D = range_of(law, "D"), model.C = range_of(law, "C");
  model.tokens_per_parameter = range_of(law, "D/N");
  model.warnings = law.warnings;
  if (law.counts.empty()) model.warnings.push_back(flag + ": does not say what its N counts; taken as all parameters");
  return model;
}

}  // namespace planner

#include "planner/calibrate/own_runs.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"
#include "fitting/least_squares.h"
#include "simulator/check/input.h"
#include "simulator/check/measurement.h"
#include "simulator/check/predict.h"

namespace planner {

namespace {

using simulator::SystemCalibration;
using Point = std::vector<double>;

constexpr std::string_view flag = "--calibrate-with";
// Of the logarithm of a factor, for numeric derivatives: beyond rounding to picoseconds, within what is linear.
constexpr double step = 5e-3;
constexpr double widest = 2.0;  // |log| of a factor: beyond e^2 a run is not what was predicted

const core::MeasuredRun& row_of(const core::MeasuredTable& table, const std::string& id) {
  std::vector<std::string> ids;
  for (const auto& run : table.runs) {
    if (run.id == id) return run;
    ids.push_back(run.id);
  }
  const auto near = core::nearest_name(id, ids);
  throw core::InputError(
      fmt::format("{} {}: no such file, nor row of {}; {}", flag, core::printable(id), table.name,
                  near ? "did you mean " + *near + "?" : "expected a log, TABLE.csv:ID or an id of that table"));
}

// The measured run that an argument names.
core::MeasuredRun measured_of(const std::string& argument, const core::MegatronMachine& machine) {
  if (std::filesystem::is_regular_file(argument)) {
    const auto table = simulator::read_measured_input(argument, machine);
    if (table.runs.size() != 1)
      throw core::InputError(
          fmt::format("{} {}: a table of {} runs, expected {}:ID", flag, argument, table.runs.size(), argument));
    return table.runs.front();
  }
  const auto colon = argument.rfind(':');
  if (colon != std::string::npos)
    return row_of(simulator::read_measured_input(argument.substr(0, colon), machine), argument.substr(colon + 1));
  return row_of(core::read_measured_table(core::data_dir() / "measured" / "runs.csv"), argument);
}

// Factors as a point: the common one, then those of communication and of the host over it, by their logarithms.
SystemCalibration factors_at(const Point& x) {
  SystemCalibration c;
  c.kernels = std::exp(x[0]);
  c.communication = std::exp(x[0] + (x.size() > 1 ? x[1] : 0.0));
  c.host = std::exp(x[0] + (x.size() > 2 ? x[2] : 0.0));
  return c;
}

double residual(const OwnRun& run, const Point& x) { return std::log(predicted_s(run.run, factors_at(x)) / run.measured_s); }

fitting::Evaluation evaluate(const std::vector<OwnRun>& runs, const Point& x, fitting::Derivatives derivatives) {
  fitting::Evaluation out;
  for (const auto& run : runs) {
    out.residuals.push_back(residual(run, x));
    if (derivatives == fitting::Derivatives::no) continue;
    for (std::size_t j = 0; j < x.size(); ++j) {
      auto moved = x;
      moved[j] += step;
      out.jacobian.push_back((residual(run, moved) - out.residuals.back()) / step);
    }
  }
  return out;
}

Point fit_factors(const std::vector<OwnRun>& runs, std::size_t factors, const OwnRunRules& rules) {
  if (runs.size() == 1) return {-residual(runs.front(), {0.0})};
  fitting::LeastSquares problem;
  for (std::size_t j = 0; j < factors; ++j) {
    problem.start.push_back(0.0);
    problem.low.push_back(-widest);
    problem.high.push_back(widest);
    problem.prior.push_back(0.0);
    problem.prior_sigma.push_back(j == 0 ? rules.common_sigma : rules.part_sigma);
  }
  problem.weights.assign(runs.size(), 1.0);
  problem.noise = rules.noise;
  problem.huber = widest;
  problem.evaluate = [&](const Point& x, fitting::Derivatives derivatives) { return evaluate(runs, x, derivatives); };
  return fitting::fit(problem).x;
}

// Root mean square of log(predicted / measured) of each run under factors fitted to the others.
double left_out_error(const std::vector<OwnRun>& runs, std::size_t factors, const OwnRunRules& rules) {
  double sum = 0.0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto others = runs;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    sum += std::pow(residual(runs[i], fit_factors(others, factors, rules)), 2);
  }
  return std::sqrt(sum / static_cast<double>(runs.size()));
}

// As many as the runs can tell: another factor must pay on runs that it was not fitted to, and be fitted to more runs than
// factors.
std::size_t factors_told_by(const std::vector<OwnRun>& runs, const OwnRunRules& rules) {
  std::size_t best = 1;
  if (runs.size() < 3) return best;
  double error = left_out_error(runs, 1, rules);
  for (std::size_t factors = 2; factors <= 3 && factors + 1 < runs.size(); ++factors) {
    const double with = left_out_error(runs, factors, rules);
    if (with > (1.0 - rules.least_gain) * error) continue;
    best = factors;
    error = with;
  }
  return best;
}

simulator::CalibratingRun described(const OwnRun& run) {
  const auto& setting = run.run.setting;
  const simulator::Bench bench(setting);
  return {run.name, setting.cluster.gpu.name,
          simulator::class_of(setting, run.run.plan, bench.curves(), simulator::uncertainty().software), run.measured_s,
          predicted_s(run.run, {})};
}

}  // namespace

OwnRun read_own_run(const std::string& argument, const core::MegatronMachine& machine) {
  const auto measured = measured_of(argument, machine);
  OwnRun run;
  run.name = measured.id;
  try {
    run.run = simulator::translate(measured);
  } catch (const core::InputError& error) {
    throw core::InputError(fmt::format("{} {}: cannot be predicted: {}", flag, core::printable(argument), error.what()));
  }
  const auto& setting = run.run.setting;
  const auto figures = simulator::measurement_of(measured, setting.model, run.run.plan, setting.seq);
  if (!figures.step_time_s)
    throw core::InputError(
        fmt::format("{} {}: has no step time, expected a run that was measured", flag, core::printable(argument)));
  const simulator::Bench bench(setting);
  if (const auto reason = simulator::why_not_offload(setting, bench, run.run.plan))
    throw core::InputError(fmt::format("{} {}: {}", flag, core::printable(argument), *reason));
  run.measured_s = *figures.step_time_s;
  return run;
}

OwnRunRules read_own_run_rules(const std::filesystem::path& file) {
  const auto root = core::Document::read_json_file(file);
  const auto number = [&](std::string_view key) {
    const auto& entry = root.at(key);
    const double value = entry.at("value").as_positive_real();
    entry.at("source").as_text();
    entry.reject_unknown({"value", "source"});
    return value;
  };
  root.at("title").as_text();
  OwnRunRules rules{number("common_sigma"), number("part_sigma"), number("noise"), number("least_gain")};
  root.reject_unknown({"title", "common_sigma", "part_sigma", "noise", "least_gain"});
  return rules;
}

double predicted_s(const simulator::Translation& run, const SystemCalibration& calibration) {
  auto corrected = run;
  simulator::calibrate(corrected.setting, calibration);
  return simulator::predict(corrected, simulator::Bench(corrected.setting)).step_time_s;
}

SystemCalibration calibrate_to(const std::vector<OwnRun>& runs, const OwnRunRules& rules) {
  CORE_ASSERT(!runs.empty());
  auto calibration = factors_at(fit_factors(runs, factors_told_by(runs, rules), rules));
  for (const auto& run : runs) calibration.runs.push_back(described(run));
  return calibration;
}

}  // namespace planner

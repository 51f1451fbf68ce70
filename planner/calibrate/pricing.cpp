#include "planner/calibrate/pricing.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "simulator/check/predict.h"

namespace planner {

namespace {

// The figures of a framework that times follow from.
struct FrameworkFigure {
  std::string_view key;
  core::Seconds core::Framework::*member;
  double unit;  // seconds
};
constexpr std::array framework_figures = std::to_array<FrameworkFigure>({
    {"step_overhead_ms", &core::Framework::step_overhead, 1e-3},
    {"host_us_per_launch", &core::Framework::host_per_launch, 1e-6},
});

const FrameworkFigure& figure_at(const Target& target) {
  for (const auto& figure : framework_figures) {
    if (figure.key == target.key) return figure;
  }
  throw core::InputError(fmt::format("calibration: {}: {}: expected step_overhead_ms or host_us_per_launch",
                                     target.file(),
                                     target.key));
}

void apply(const Target& target, double factor, core::Framework& framework) {
  if (framework.name != target.name) return;
  const auto& figure = figure_at(target);
  framework.*figure.member = core::Seconds{factor * target.start.front() * figure.unit};
}

CurvesByGpu shipped_curves(const std::vector<CalibrationRow>& rows) {
  CurvesByGpu shipped;
  for (const auto& row : rows) {
    const auto& gpu = row.run.setting.cluster.gpu;
    if (!shipped.contains(gpu.name)) shipped.emplace(gpu.name, simulator::Curves::load(gpu));
  }
  return shipped;
}

}  // namespace

Pricing::Pricing(const CalibrationSpec& spec, const std::vector<CalibrationRow>& rows)
    : spec_(spec), rows_(rows), targets_(spec.parameters, shipped_curves(rows)) {
  for (std::size_t j = 0; j < spec.parameters.size(); ++j) {
    auto& reached = reaches_.emplace_back(rows.size(), false);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& setting = rows[i].run.setting;
      reached[i] = targets_.reaches(j, setting.cluster.gpu.name);
      for (const auto& target : spec.parameters[j].targets) {
        if (target.folder != "frameworks") continue;
        figure_at(target);
        if (setting.framework_of(rows[i].run.plan).name == target.name) reached[i] = true;
      }
    }
  }
}

Pricing::Point Pricing::at(std::vector<double> x) const {
  auto curves = targets_.at(x);
  return {std::move(x), std::move(curves)};
}

std::vector<double> Pricing::residuals(std::size_t row, const std::vector<const Point*>& points) const {
  const auto& measured = rows_[row];
  const auto& gpu = measured.run.setting.cluster.gpu.name;
  auto step = simulator::repeated(measured.run);
  std::vector<double> residuals;
  for (const auto* point : points) {
    const auto setting = setting_at(measured.run.setting, point->x);
    const double predicted_s = step.time(setting, simulator::Bench(setting, point->curves.at(gpu))).value;
    residuals.push_back(std::log(predicted_s / measured.measured_s));
  }
  return residuals;
}

simulator::Setting Pricing::setting_at(const simulator::Setting& setting, const std::vector<double>& x) const {
  auto result = setting;
  for (std::size_t j = 0; j < x.size(); ++j) {
    for (const auto& target : spec_.parameters[j].targets) {
      if (target.folder != "frameworks") continue;
      apply(target, std::exp(x[j]), result.framework);
      apply(target, std::exp(x[j]), result.sharded_framework);
    }
  }
  return result;
}

}  // namespace planner

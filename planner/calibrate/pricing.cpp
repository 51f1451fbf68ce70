#include "planner/calibrate/pricing.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"
#include "planner/calibrate/data_text.h"
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

// The file of data/curves that a GPU reads a number from; "" where it reads none.
std::string curves_file(const core::Gpu& gpu, std::string_view key) {
  for (const auto& name : {gpu.name, "collectives-" + gpu.arch, gpu.arch}) {
    const auto file = core::data_dir() / "curves" / (name + ".json");
    if (std::filesystem::exists(file) &&
        member_at(core::Document::read_json_file(file), key) != nullptr)
      return name;
  }
  return "";
}

std::vector<double> scaled(const std::vector<double>& values, double factor) {
  auto result = values;
  for (auto& value : result) value *= factor;
  return result;
}

void apply(const Target& target, double factor, core::Framework& framework) {
  if (framework.name != target.name) return;
  const auto& figure = figure_at(target);
  framework.*figure.member = core::Seconds{factor * target.start.front() * figure.unit};
}

}  // namespace

Pricing::Pricing(const CalibrationSpec& spec, const std::vector<CalibrationRow>& rows)
    : spec_(spec), rows_(rows) {
  for (const auto& row : rows) {
    const auto& gpu = row.run.setting.cluster.gpu;
    if (!shipped_.contains(gpu.name)) shipped_.emplace(gpu.name, simulator::Curves::load(gpu));
  }
  for (const auto& parameter : spec.parameters) {
    std::map<std::string, bool> by_gpu;
    for (const auto& [name, curves] : shipped_) {
      for (const auto& target : parameter.targets) {
        if (target.folder == "curves" && curves_file(curves.gpu(), target.key) == target.name) {
          reads_[name].insert(&target);
          by_gpu[name] = true;
        }
      }
    }
    auto& reached = reaches_.emplace_back(rows.size(), false);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& setting = rows[i].run.setting;
      reached[i] = by_gpu.contains(setting.cluster.gpu.name);
      for (const auto& target : parameter.targets) {
        if (target.folder != "frameworks") continue;
        figure_at(target);
        if (setting.framework_of(rows[i].run.plan).name == target.name) reached[i] = true;
      }
    }
  }
}

Pricing::CurvesByGpu Pricing::curves(const std::vector<double>& x) const {
  CurvesByGpu result;
  for (const auto& [name, shipped] : shipped_) {
    auto changed = shipped;
    for (std::size_t j = 0; j < x.size(); ++j) {
      for (const auto& target : spec_.parameters[j].targets) {
        const auto reads = reads_.find(name);
        if (reads != reads_.end() && reads->second.contains(&target))
          changed = changed.with(target.key, scaled(target.start, std::exp(x[j])));
      }
    }
    result.emplace(name, std::move(changed));
  }
  return result;
}

double Pricing::residual(std::size_t row,
                         const std::vector<double>& x,
                         const CurvesByGpu& curves) const {
  const auto& measured = rows_[row];
  auto run = measured.run;
  for (std::size_t j = 0; j < x.size(); ++j) {
    for (const auto& target : spec_.parameters[j].targets) {
      if (target.folder != "frameworks") continue;
      apply(target, std::exp(x[j]), run.setting.framework);
      apply(target, std::exp(x[j]), run.setting.sharded_framework);
    }
  }
  const simulator::Bench bench(run.setting, curves.at(run.setting.cluster.gpu.name));
  return std::log(simulator::predict(run, bench).step_time_s / measured.measured_s);
}

}  // namespace planner

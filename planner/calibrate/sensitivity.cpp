#include "planner/calibrate/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/json_writer.h"
#include "planner/calibrate/data_text.h"
#include "planner/calibrate/pricing.h"
#include "planner/parallel.h"

namespace planner {

namespace {

// A target as its file has it, the whole list where a specification names one number of it.
Target as_it_stands(Target target) {
  const auto root = core::Document::read_json_file(core::data_dir() / target.file());
  const auto* figure = member_at(root, target.key);
  CORE_ASSERT(figure != nullptr);  // specifications are read with their targets
  target.element.reset();
  target.start.clear();
  if (figure->has("value")) {
    target.start.push_back(figure->at("value").as_real());
  } else {
    for (const auto& number : figure->at("values").as_list()) target.start.push_back(number.as_real());
  }
  return target;
}

// A parameter for each figure, at 1 as it stands.
CalibrationSpec one_by_one(const std::vector<Target>& figures) {
  CalibrationSpec spec;
  for (const auto& figure : figures) {
    Parameter parameter;
    parameter.name = figure.file() + ":" + figure.key;
    parameter.targets = {figure};
    spec.parameters.push_back(std::move(parameter));
  }
  return spec;
}

std::vector<Pricing::Point> points_of(const Pricing& pricing, std::size_t figures, double factor) {
  std::vector<Pricing::Point> points = {pricing.at(std::vector<double>(figures, 0.0))};
  for (std::size_t j = 0; j < figures; ++j) {
    std::vector<double> x(figures, 0.0);
    x[j] = std::log(factor);
    points.push_back(pricing.at(std::move(x)));
  }
  return points;
}

void rank(std::vector<Sensitivity>& found) {
  const auto name = [](const Sensitivity& s) { return std::pair(s.figure.file(), s.figure.key); };
  std::ranges::sort(found, [&](const Sensitivity& a, const Sensitivity& b) {
    return a.mean_change != b.mean_change ? a.mean_change > b.mean_change : name(a) < name(b);
  });
}

}  // namespace

std::vector<Target> declared_figures(const std::vector<CalibrationSpec>& specs) {
  std::vector<Target> figures;
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& spec : specs) {
    for (const auto& parameter : spec.parameters) {
      for (const auto& target : parameter.targets) {
        if (seen.emplace(target.file(), target.key).second) figures.push_back(as_it_stands(target));
      }
    }
  }
  return figures;
}

std::vector<Sensitivity> sensitivities(const std::vector<Target>& figures,
                                       const CalibrationRows& rows,
                                       double factor) {
  const auto spec = one_by_one(figures);
  const Pricing pricing(spec, rows.rows);
  const auto points = points_of(pricing, figures.size(), factor);
  std::vector<std::vector<double>> changes(rows.rows.size(), std::vector<double>(figures.size(), 0.0));
  parallel_for(rows.rows.size(), [&](std::size_t i) {
    std::vector<std::size_t> reached;
    std::vector<const Pricing::Point*> asked = {&points.front()};
    for (std::size_t j = 0; j < figures.size(); ++j) {
      if (!pricing.reaches(j, i)) continue;
      reached.push_back(j);
      asked.push_back(&points[j + 1]);
    }
    const auto residuals = pricing.residuals(i, asked);
    for (std::size_t k = 0; k < reached.size(); ++k)
      changes[i][reached[k]] = std::abs(std::expm1(residuals[k + 1] - residuals.front()));
  });
  std::vector<Sensitivity> found;
  const auto n = static_cast<double>(rows.rows.size());
  for (std::size_t j = 0; j < figures.size(); ++j) {
    auto& s = found.emplace_back(Sensitivity{figures[j]});
    for (const auto& of_row : changes) {
      if (of_row[j] != 0.0) ++s.rows;
      s.mean_change += of_row[j] / n;
    }
    s.share = static_cast<double>(s.rows) / n;
  }
  rank(found);
  return found;
}

std::string sensitivities_table(const std::vector<Sensitivity>& found, std::size_t rows, double factor) {
  auto text = fmt::format("{} figures times {:g}, step times of {} rows\n{:<32} {:<36} {:>12} {:>7} {:>13}\n",
                          found.size(),
                          factor,
                          rows,
                          "file",
                          "key",
                          "value",
                          "moved %",
                          "mean change %");
  for (const auto& s : found) {
    text += fmt::format("{:<32} {:<36} {:>12} {:>7.1f} {:>13.3f}\n",
                        s.figure.file(),
                        s.figure.key,
                        fmt::format("{:.4g}{}", s.figure.start.front(), s.figure.start.size() > 1 ? ", ..." : ""),
                        100.0 * s.share,
                        100.0 * s.mean_change);
  }
  return text;
}

std::string sensitivities_json(const std::vector<Sensitivity>& found, std::size_t rows, double factor) {
  core::JsonWriter json;
  json.begin_object();
  json.member("rows", static_cast<std::int64_t>(rows));
  json.member("factor", factor);
  json.key("figures").begin_list();
  for (const auto& s : found) {
    json.begin_object();
    json.member("file", s.figure.file());
    json.member("key", s.figure.key);
    json.key("values").begin_list();
    for (const double value : s.figure.start) json.value(value);
    json.end_list();
    json.member("rows_moved", static_cast<std::int64_t>(s.rows));
    json.member("share_moved", s.share);
    json.member("mean_change", s.mean_change);
    json.end_object();
  }
  return json.end_list().end_object().text();
}

}  // namespace planner

#include "planner/calibrate/calibrate_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/error.h"
#include "planner/calibrate/curve_targets.h"
#include "planner/calibrate/fit_constants.h"
#include "planner/calibrate/kernel_rows.h"

namespace planner {

namespace {

// A row of a fit.
struct Chosen {
  KernelRow row;
  Observations::Row counts;
};

// The tables of a folder, each read once.
class Tables {
 public:
  explicit Tables(std::filesystem::path folder) : folder_(std::move(folder)) {
    if (!std::filesystem::is_directory(folder_))
      throw core::InputError(fmt::format("--from {}: expected a folder", folder_.string()));
  }

  // Null where the folder has no such table.
  const KernelTable* find(const std::string& name) {
    auto found = tables_.find(name);
    if (found == tables_.end()) {
      std::optional<KernelTable> table;
      if (std::filesystem::is_regular_file(folder_ / name)) table = read_kernel_table(folder_ / name);
      found = tables_.emplace(name, std::move(table)).first;
    }
    return found->second ? &*found->second : nullptr;
  }

  void require_any() const {
    if (std::ranges::any_of(tables_, [](const auto& t) { return t.second.has_value(); })) return;
    std::string names;
    for (const auto& [name, table] : tables_) names += (names.empty() ? "" : ", ") + name;
    throw core::InputError(fmt::format("--from {}: expected a folder with one of {}", folder_.string(), names));
  }

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::optional<KernelTable>> tables_;
};

bool is_among(const std::vector<std::string>& texts, const std::string& text) {
  return std::ranges::find(texts, text) != texts.end();
}

bool chosen(const RowChoice& choice, const KernelCells& cells) {
  const auto named = [&](const auto& by_column) {
    return is_among(by_column.second, cells.text(by_column.first));
  };
  return std::ranges::all_of(choice.where, named) && std::ranges::none_of(choice.without, named) &&
         std::ranges::all_of(choice.at_least, [&](const auto& least) {
           return cells.positive(least.first) >= least.second;
         });
}

std::string source_of(const RowChoice& choice, const KernelCells& cells) {
  for (const auto& column : choice.source) {
    if (!cells.has(column)) continue;
    const auto& text = cells.text(column);
    return text.substr(0, text.find_first_of(" ,;"));
  }
  return cells.text(choice.source.front());  // complains
}

// The rows that inform a fit, their weights not yet shared out.
std::vector<Chosen> rows_of(const KernelFit& fit, Tables& tables, const std::string& leave_out) {
  std::vector<Chosen> rows;
  for (const auto& name : fit.rows.tables) {
    const auto* table = tables.find(name);
    if (table == nullptr) continue;
    for (const auto& line : table->rows) {
      const KernelCells cells(*table, line);
      if (!chosen(fit.rows, cells)) continue;
      Observations::Row counts{source_of(fit.rows, cells), 1.0};
      counts.held_back = !leave_out.empty() && (counts.source == leave_out ||
                                                cells.text("source").find(leave_out) != std::string::npos);
      if (counts.held_back) counts.source += " (held back)";
      const auto& lighter = fit.rows.lighter;
      if (lighter && cells.positive(lighter->column) < lighter->below) counts.weight = lighter->weight;
      rows.push_back({kernel_row(fit.rows.kind, cells), counts});
    }
  }
  return rows;
}

void weigh(std::vector<Chosen>& rows, double source_most) {
  std::map<std::string, std::size_t> n;
  for (const auto& each : rows) ++n[each.counts.source];
  for (auto& each : rows) each.counts.weight *= weight_of_each(n.at(each.counts.source), source_most);
}

// The curves of all GPUs of rows, with all parameters at their starts.
CurvesByGpu curves_at_starts(const std::vector<KernelFit>& fits,
                             const std::vector<std::vector<Chosen>>& rows) {
  CurvesByGpu curves;
  for (const auto& of_fit : rows) {
    for (const auto& each : of_fit) {
      const auto& gpu = each.row.gpu;
      if (!curves.contains(gpu.name)) curves.emplace(gpu.name, simulator::Curves::load(gpu));
    }
  }
  for (const auto& fit : fits)
    curves = CurveTargets(fit.spec.parameters, std::move(curves))
                 .at(std::vector<double>(fit.spec.parameters.size(), 0.0));
  return curves;
}

CurvesByGpu of_gpus(const std::vector<Chosen>& rows, const CurvesByGpu& curves) {
  CurvesByGpu result;
  for (const auto& each : rows) {
    if (!result.contains(each.row.gpu.name))
      result.emplace(each.row.gpu.name, curves.at(each.row.gpu.name));
  }
  return result;
}

Calibration fit_one(const KernelFit& fit,
                    const std::vector<Chosen>& rows,
                    CurvesByGpu& curves,
                    LeaveOneOut leave_one_out) {
  const auto& parameters = fit.spec.parameters;
  const CurveTargets targets(parameters, of_gpus(rows, curves));
  Observations observed;
  for (const auto& each : rows) observed.rows.push_back(each.counts);
  observed.at = [&](const std::vector<std::vector<double>>& points) -> Observations::Residuals {
    std::vector<CurvesByGpu> moved;
    for (const auto& x : points) moved.push_back(targets.at(x));
    return [&rows, moved = std::move(moved)](std::size_t i, const std::vector<std::size_t>& which) {
      const auto& row = rows[i].row;
      std::vector<double> residuals;
      for (const auto k : which)
        residuals.push_back(std::log(predicted_s(row, moved[k].at(row.gpu.name)) / row.measured_s));
      return residuals;
    };
  };
  observed.reaches = [&](std::size_t j, std::size_t i) { return targets.reaches(j, rows[i].row.gpu.name); };
  auto result = fit_constants(fit.spec, observed, leave_one_out);
  std::vector<double> x;
  for (std::size_t j = 0; j < parameters.size(); ++j)
    x.push_back(std::log(result.fitted[j].value / parameters[j].start()));
  curves = CurveTargets(parameters, curves).at(x);
  return result;
}

void require_left_out(const std::vector<std::vector<Chosen>>& rows, const std::string& leave_out) {
  if (leave_out.empty()) return;
  for (const auto& of_fit : rows) {
    if (std::ranges::any_of(of_fit, [](const Chosen& each) { return each.counts.held_back; })) return;
  }
  throw core::InputError(fmt::format("--leave-out {}: no row of the tables has this source", leave_out));
}

}  // namespace

std::vector<KernelCalibration> calibrate_kernels(const std::vector<KernelFit>& fits,
                                                 const std::filesystem::path& folder,
                                                 const std::string& leave_out,
                                                 LeaveOneOut leave_one_out) {
  Tables tables(folder);
  std::vector<std::vector<Chosen>> rows;
  for (const auto& fit : fits) {
    rows.push_back(rows_of(fit, tables, leave_out));
    weigh(rows.back(), fit.spec.source_most);
  }
  tables.require_any();
  require_left_out(rows, leave_out);
  auto curves = curves_at_starts(fits, rows);
  std::vector<KernelCalibration> results;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    KernelCalibration result{fits[i].name, {}, fit_one(fits[i], rows[i], curves, leave_one_out)};
    for (const auto& name : fits[i].rows.tables) {
      if (tables.find(name) != nullptr) result.tables.push_back(name);
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace planner

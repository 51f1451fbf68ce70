#include "fitting/fit_warnings.h"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <set>

#include "fitting/solver/row_fit.h"

namespace fitting {
namespace {

using Warnings = std::vector<std::string>;

void bounds(const FitReport& report, Warnings& warnings) {
  const auto& law = report.law.law;
  for (std::size_t j = 0; j < law.parameters.size(); ++j) {
    if (!at_bound(law.parameters[j], report.law.parameters[j])) continue;
    warnings.push_back(fmt::format("{} is at a bound of the search ({:.4g})", law.parameters[j].name, report.law.parameters[j]));
  }
  if (report.draws_at_bound * 100 > report.draws) {
    warnings.push_back(fmt::format("{} of {} bootstrap draws end at a bound", report.draws_at_bound, report.draws));
  }
  if (report.draws_failed > 0) warnings.push_back(fmt::format("{} of {} bootstrap draws found no minimum", report.draws_failed, report.draws));
}

// Distinct to 2 %: sizes read off a figure jitter.
std::size_t distinct(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::size_t count = 0;
  double first = 0.0;  // of those that count as one
  for (const double value : values) {
    if (count == 0 || value > 1.02 * first) ++count, first = value;
  }
  return count;
}

std::string row_name(const FitOptions& options, std::size_t row) {
  return row < options.row_names.size() ? options.row_names[row] : fmt::format("row {}", row + 1);
}

void outliers(const FitReport& report, const FitOptions& options, Warnings& warnings) {
  if (!report.outliers) return;
  const auto& [rows, residuals, parameters] = *report.outliers;
  constexpr std::size_t named = 3;
  std::string worst, without;
  for (std::size_t i = 0; i < std::min(rows.size(), named); ++i) {
    worst += fmt::format("{}{} ({:+.1f} %)", i == 0 ? "" : ", ", row_name(options, rows[i]), 100.0 * std::expm1(residuals[i]));
  }
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    const auto& name = report.law.law.parameters[j].name;
    if (options.fixed.count(name) == 0) without += fmt::format("{}{} {:.4g}", without.empty() ? "" : ", ", name, parameters[j]);
  }
  warnings.push_back(fmt::format("{} of {} rows lie far off the law: {}{}; without them {}", rows.size(), report.rows, worst,
                                 rows.size() > named ? ", ..." : "", without));
}

// How far apart the two halves of values lie that a cut parts best, in their deviations (Ashman et al. 1994, D); 0 where one half
// has fewer than a twentieth of them. A normal distribution has 2.7, a uniform one 3.5.
double two_clusters(std::vector<double> values, double& low, double& high) {
  std::sort(values.begin(), values.end());
  const auto n = values.size();
  std::vector<double> sums(n + 1, 0.0), squares(n + 1, 0.0);
  const double middle = values[n / 2];  // taken off: sums of squares keep their digits
  for (std::size_t i = 0; i < n; ++i) {
    const double v = values[i] - middle;
    sums[i + 1] = sums[i] + v, squares[i + 1] = squares[i] + v * v;
  }
  double best = 0.0;
  for (std::size_t cut = std::max<std::size_t>(n / 20, 2); cut + std::max<std::size_t>(n / 20, 2) <= n; ++cut) {
    const auto a = static_cast<double>(cut), b = static_cast<double>(n - cut);
    const double mean_a = sums[cut] / a, mean_b = (sums[n] - sums[cut]) / b;
    const double spread = std::max(squares[cut] / a - mean_a * mean_a, 0.0) + std::max((squares[n] - squares[cut]) / b - mean_b * mean_b, 0.0);
    const double apart = std::sqrt(2.0) * (mean_b - mean_a) / std::sqrt(spread + 1e-12 * middle * middle + 1e-300);
    if (apart <= best) continue;
    best = apart, low = middle + mean_a, high = middle + mean_b;
  }
  return best;
}

// Draws that fall into two groups: two minima take turns to be the best.
void clusters(const FitReport& report, const FitOptions& options, Warnings& warnings) {
  constexpr std::size_t enough = 100;
  constexpr double far = 6.0;
  const auto& draws = report.law.draws;
  if (draws.size() < enough) return;
  for (std::size_t j = 0; j < report.law.law.parameters.size(); ++j) {
    const auto& parameter = report.law.law.parameters[j];
    if (options.fixed.count(parameter.name) != 0) continue;
    std::vector<double> values;
    for (const auto& draw : draws) values.push_back(parameter.scale == Scale::log ? std::log(draw[j]) : draw[j]);
    double low = 0.0, high = 0.0;
    if (two_clusters(std::move(values), low, high) < far) continue;
    if (parameter.scale == Scale::log) low = std::exp(low), high = std::exp(high);
    warnings.push_back(fmt::format("bootstrap draws of {} fall into two groups, around {:.4g} and {:.4g}: an interval over both hides it", parameter.name, low, high));
  }
}

const std::vector<double>* column(const Solver& solver, const std::string& name) {
  const auto& variables = solver.law().variables;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (variables[v].name == name) return &solver.rows().columns[v];
  }
  return nullptr;
}

void design(const Solver& solver, Warnings& warnings) {
  for (const auto& variable : solver.law().variables) {
    const auto* values = column(solver, variable.name);
    if ((variable.name != "N" && variable.name != "D" && variable.name != "C") || distinct(*values) >= 3) continue;
    warnings.push_back(fmt::format("only {} distinct values of {}: its exponent is not told", distinct(*values), variable.name));
  }
  const auto *N = column(solver, "N"), *D = column(solver, "D");
  if (N == nullptr || D == nullptr) return;
  const auto [low, high] = std::minmax_element(N->begin(), N->end(), [&](const auto& a, const auto& b) {
    return (*D)[static_cast<std::size_t>(&a - N->data())] / a < (*D)[static_cast<std::size_t>(&b - N->data())] / b;
  });
  const auto ratio = [&](auto at) { return (*D)[static_cast<std::size_t>(at - N->begin())] / *at; };
  if (ratio(high) < 1.3 * ratio(low)) {
    warnings.push_back(fmt::format("all runs have {:.3g} to {:.3g} tokens a parameter: alpha and beta are not told apart", ratio(low), ratio(high)));
  }
}

void minima(const FitReport& report, Warnings& warnings) {
  std::size_t near = 0;
  for (const auto& basin : report.minima) near += basin.minimum.objective <= 1.0025 * report.objective ? 1 : 0;
  if (near < 2) return;
  warnings.push_back(fmt::format("{} minima within 0.25 % of the best: the rows do not choose between them", near));
}

// Directions that change no prediction: the smallest eigenvalue of J'J, columns of J of length 1.
void identifiable(const FitReport& report, const Solver& solver, Warnings& warnings) {
  const auto& law = solver.law();
  const auto n = static_cast<Eigen::Index>(law.parameters.size());
  if (n < 2) return;
  std::vector<double> fitted;
  for (const auto& parameter : law.parameters) {
    for (std::size_t j = 0; j < report.law.law.parameters.size(); ++j) {
      if (report.law.law.parameters[j].name == parameter.name) fitted.push_back(report.law.parameters[j]);
    }
  }
  std::vector<double> values, jacobian;
  RowFormula(law, solver.rows().columns, solver.rows().size()).evaluate(fitted, values, &jacobian);
  Eigen::MatrixXd J(static_cast<Eigen::Index>(values.size()), n);
  for (Eigen::Index i = 0; i < J.rows(); ++i) {
    for (Eigen::Index j = 0; j < n; ++j) J(i, j) = jacobian[static_cast<std::size_t>(i * n + j)] / values[static_cast<std::size_t>(i)];
  }
  for (Eigen::Index j = 0; j < n; ++j) {
    const double length = J.col(j).norm();
    if (!(length > 0.0)) {
      warnings.push_back(fmt::format("{} changes no prediction on these rows", law.parameters[static_cast<std::size_t>(j)].name));
      return;
    }
    J.col(j) /= length;
  }
  if (!J.allFinite()) return;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(J.transpose() * J);
  if (eigen.eigenvalues()(0) > 1e-9) return;
  const Eigen::VectorXd direction = eigen.eigenvectors().col(0).cwiseAbs();
  std::string names;
  for (Eigen::Index j = 0; j < n; ++j) {
    if (direction(j) > 0.2) names += (names.empty() ? "" : ", ") + law.parameters[static_cast<std::size_t>(j)].name;
  }
  warnings.push_back(fmt::format("{} move together: the rows do not tell them apart", names));
}

void exponents(const FitReport& report, Warnings& warnings) {
  for (const auto& derived : report.derived) {
    if (derived.name != "a" || !derived.interval) continue;
    const double width = derived.interval->high - derived.interval->low;
    if (width > 0.2) warnings.push_back(fmt::format("a, the exponent of the best size, is known to {:.2f} only", width));
  }
}

}  // namespace

std::vector<std::string> warnings_of(const FitReport& report, const Solver& solver, const FitOptions& options) {
  Warnings warnings;
  if (!report.converged) warnings.push_back("the search stopped before it converged");
  const auto rows = static_cast<double>(report.rows), parameters = static_cast<double>(solver.law().parameters.size());
  if (rows < 5.0 * parameters) warnings.push_back(fmt::format("{:.0f} rows for {:.0f} parameters", rows, parameters));
  bounds(report, warnings);
  design(solver, warnings);
  minima(report, warnings);
  identifiable(report, solver, warnings);
  exponents(report, warnings);
  outliers(report, options, warnings);
  clusters(report, options, warnings);
  if (report.starts >= 50 && report.starts_at_best * 50 < report.starts) {
    warnings.push_back(fmt::format("only {} of {} starts reached the best minimum", report.starts_at_best, report.starts));
  }
  return warnings;
}

}  // namespace fitting

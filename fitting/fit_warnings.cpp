#include "fitting/fit_warnings.h"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <set>

#include "fitting/row_fit.h"

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
  std::size_t count = values.empty() ? 0 : 1;
  for (std::size_t i = 1; i < values.size(); ++i) count += values[i] > 1.02 * values[i - 1] ? 1 : 0;
  return count;
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

std::vector<std::string> warnings_of(const FitReport& report, const Solver& solver) {
  Warnings warnings;
  if (!report.converged) warnings.push_back("the search stopped before it converged");
  const auto rows = static_cast<double>(report.rows), parameters = static_cast<double>(solver.law().parameters.size());
  if (rows < 5.0 * parameters) warnings.push_back(fmt::format("{:.0f} rows for {:.0f} parameters", rows, parameters));
  bounds(report, warnings);
  design(solver, warnings);
  minima(report, warnings);
  identifiable(report, solver, warnings);
  exponents(report, warnings);
  if (report.starts >= 50 && report.starts_at_best * 50 < report.starts) {
    warnings.push_back(fmt::format("only {} of {} starts reached the best minimum", report.starts_at_best, report.starts));
  }
  return warnings;
}

}  // namespace fitting

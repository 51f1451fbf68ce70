#include "fitting/row_formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace fitting {
namespace {

using Op = Formula::Op;

// Derivatives of a node by its operands, of values a, b and its own v.
struct Slopes {
  double by_a = 0.0, by_b = 0.0;
};

Slopes slopes(Op op, double a, double b, double v) {
  switch (op) {
    case Op::add: return {1.0, 1.0};
    case Op::subtract: return {1.0, -1.0};
    case Op::multiply: return {b, a};
    case Op::divide: return {1.0 / b, -v / b};
    case Op::power: return {b * std::pow(a, b - 1.0), a > 0.0 ? v * std::log(a) : 0.0};
    case Op::negate: return {-1.0, 0.0};
    case Op::exp: return {v, 0.0};
    case Op::log: return {1.0 / a, 0.0};
    case Op::sqrt: return {0.5 / v, 0.0};
    case Op::abs: return {a < 0.0 ? -1.0 : 1.0, 0.0};
    case Op::min: return a <= b ? Slopes{1.0, 0.0} : Slopes{0.0, 1.0};
    case Op::max: return a >= b ? Slopes{1.0, 0.0} : Slopes{0.0, 1.0};
    default: return {};
  }
}

constexpr std::size_t block_rows = 128;

}  // namespace

RowFormula::RowFormula(const Law& law, const std::vector<std::vector<double>>& columns, std::size_t rows)
    : formula_(Formula::parse(law.formula, law.name)), rows_(rows), parameters_(law.parameters.size()) {
  CORE_ASSERT(columns.size() == law.variables.size());
  std::vector<const std::vector<double>*> column_of;
  for (const auto& symbol : formula_.symbols()) {
    const auto variable = std::find_if(law.variables.begin(), law.variables.end(), [&](const auto& v) { return v.name == symbol; });
    const auto parameter = std::find_if(law.parameters.begin(), law.parameters.end(), [&](const auto& p) { return p.name == symbol; });
    const bool is_parameter = parameter != law.parameters.end();
    if (variable == law.variables.end() && !is_parameter) {
      throw core::InputError(fmt::format("{}: found \"{}\" in the formula, expected a variable or parameter", law.name, symbol));
    }
    parameter_of_.push_back(is_parameter ? std::optional(static_cast<std::size_t>(parameter - law.parameters.begin())) : std::nullopt);
    column_of.push_back(is_parameter ? nullptr : &columns[static_cast<std::size_t>(variable - law.variables.begin())]);
  }
  const auto& nodes = formula_.nodes();
  data_.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& node = nodes[i];
    if (node.op == Op::symbol) {
      depends_.push_back(parameter_of_[index(node.a)].has_value());
      if (!depends_[i]) data_[i] = *column_of[index(node.a)];
      continue;
    }
    depends_.push_back((node.a >= 0 && depends_[index(node.a)]) || (node.b >= 0 && depends_[index(node.b)]));
    if (depends_[i]) continue;
    data_[i].resize(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      data_[i][row] = apply(node, node.a < 0 ? 0.0 : data_[index(node.a)][row], node.b < 0 ? 0.0 : data_[index(node.b)][row]);
    }
  }
}

std::optional<std::size_t> RowFormula::parameter(int node) const {
  const auto& n = formula_.nodes()[index(node)];
  return n.op == Op::symbol ? parameter_of_[index(n.a)] : std::nullopt;
}

void RowFormula::evaluate(const std::vector<double>& parameters, std::vector<double>& values, std::vector<double>* jacobian) const {
  CORE_ASSERT(parameters.size() == parameters_);
  values.resize(rows_);
  if (jacobian != nullptr) jacobian->assign(rows_ * parameters_, 0.0);
  for (std::size_t first = 0; first < rows_; first += block_rows) {
    block(first, std::min(block_rows, rows_ - first), parameters, values, jacobian);
  }
}

void RowFormula::block(std::size_t first, std::size_t count, const std::vector<double>& parameters, std::vector<double>& values,
                       std::vector<double>* jacobian) const {
  const auto& nodes = formula_.nodes();
  thread_local std::vector<double> own, adjoint;
  own.resize(nodes.size() * block_rows);
  const auto at = [&](int node) { return depends_[index(node)] ? own.data() + index(node) * block_rows : data_[index(node)].data() + first; };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!depends_[i]) continue;
    const auto& node = nodes[i];
    double* out = own.data() + i * block_rows;
    if (node.op == Op::symbol) {
      std::fill_n(out, count, parameters[*parameter_of_[index(node.a)]]);
      continue;
    }
    const double* a = at(node.a);
    const double* b = node.b < 0 ? a : at(node.b);
    for (std::size_t row = 0; row < count; ++row) out[row] = apply(node, a[row], b[row]);
  }
  std::copy_n(at(formula_.result()), count, values.begin() + static_cast<std::ptrdiff_t>(first));
  if (jacobian == nullptr || !depends_[index(formula_.result())]) return;
  adjoint.assign(nodes.size() * block_rows, 0.0);
  std::fill_n(adjoint.data() + index(formula_.result()) * block_rows, count, 1.0);
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (!depends_[i]) continue;
    const auto& node = nodes[i];
    const double* up = adjoint.data() + i * block_rows;
    if (node.op == Op::symbol) {
      const auto parameter = *parameter_of_[index(node.a)];
      for (std::size_t row = 0; row < count; ++row) (*jacobian)[(first + row) * parameters_ + parameter] += up[row];
      continue;
    }
    const double *a = at(node.a), *b = node.b < 0 ? a : at(node.b), *v = own.data() + i * block_rows;
    double* to_a = depends_[index(node.a)] ? adjoint.data() + index(node.a) * block_rows : nullptr;
    double* to_b = node.b >= 0 && depends_[index(node.b)] ? adjoint.data() + index(node.b) * block_rows : nullptr;
    for (std::size_t row = 0; row < count; ++row) {
      if (up[row] == 0.0) continue;
      const auto s = slopes(node.op, a[row], b[row], v[row]);
      if (to_a != nullptr) to_a[row] += up[row] * s.by_a;
      if (to_b != nullptr) to_b[row] += up[row] * s.by_b;
    }
  }
}

}  // namespace fitting

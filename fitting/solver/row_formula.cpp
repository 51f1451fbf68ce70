#include "fitting/solver/row_formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "fitting/solver/row_operations.h"

namespace fitting {
namespace {

using Op = Formula::Op;

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
  logs_.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& node = nodes[i];
    if (node.op == Op::symbol) {
      depends_.push_back(parameter_of_[index(node.a)].has_value());
      alike_.push_back(depends_[i]);
      if (!depends_[i]) data_[i] = *column_of[index(node.a)];
      continue;
    }
    depends_.push_back((node.a >= 0 && depends_[index(node.a)]) || (node.b >= 0 && depends_[index(node.b)]));
    const auto same = [&](int operand) { return operand < 0 || alike_[index(operand)] || nodes[index(operand)].op == Op::number; };
    alike_.push_back(depends_[i] && same(node.a) && same(node.b));
    if (node.op == Op::power && depends_[i] && !depends_[index(node.a)] && logs_[index(node.a)].empty()) {
      logs_[index(node.a)].resize(rows);
      apply_rows(Op::log, rows, data_[index(node.a)].data(), nullptr, logs_[index(node.a)].data());
    }
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
  thread_local std::vector<double> own;
  own.resize(formula_.nodes().size() * block_rows);
  set_alike(parameters, own);
  for (std::size_t first = 0; first < rows_; first += block_rows) {
    block(first, std::min(block_rows, rows_ - first), own, values, jacobian);
  }
}

// Nodes that are the same on all rows, once for all blocks.
void RowFormula::set_alike(const std::vector<double>& parameters, std::vector<double>& own) const {
  const auto& nodes = formula_.nodes();
  const auto value = [&](int node) {
    if (node < 0) return 0.0;
    return depends_[index(node)] ? own[index(node) * block_rows] : nodes[index(node)].number;
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!alike_[i]) continue;
    const auto& node = nodes[i];
    const double one = node.op == Op::symbol ? parameters[*parameter_of_[index(node.a)]] : apply(node, value(node.a), value(node.b));
    std::fill_n(own.data() + i * block_rows, std::min(block_rows, rows_), one);
  }
}

void RowFormula::block(std::size_t first, std::size_t count, std::vector<double>& own, std::vector<double>& values,
                       std::vector<double>* jacobian) const {
  const auto& nodes = formula_.nodes();
  const auto at = [&](int node) { return depends_[index(node)] ? own.data() + index(node) * block_rows : data_[index(node)].data() + first; };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!depends_[i] || alike_[i]) continue;
    const double* a = at(nodes[i].a);
    apply_rows(nodes[i].op, count, a, nodes[i].b < 0 ? a : at(nodes[i].b), own.data() + i * block_rows);
  }
  std::copy_n(at(formula_.result()), count, values.begin() + static_cast<std::ptrdiff_t>(first));
  if (jacobian != nullptr && depends_[index(formula_.result())]) reverse(first, count, own, *jacobian);
}

void RowFormula::reverse(std::size_t first, std::size_t count, const std::vector<double>& own, std::vector<double>& jacobian) const {
  const auto& nodes = formula_.nodes();
  thread_local std::vector<double> adjoint;
  adjoint.assign(nodes.size() * block_rows, 0.0);
  const auto at = [&](int node) { return depends_[index(node)] ? own.data() + index(node) * block_rows : data_[index(node)].data() + first; };
  const auto to = [&](int node) { return node >= 0 && depends_[index(node)] ? adjoint.data() + index(node) * block_rows : nullptr; };
  std::fill_n(to(formula_.result()), count, 1.0);
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (!depends_[i]) continue;
    const auto& node = nodes[i];
    const double* up = adjoint.data() + i * block_rows;
    if (node.op == Op::symbol) {
      const auto parameter = *parameter_of_[index(node.a)];
      for (std::size_t row = 0; row < count; ++row) jacobian[(first + row) * parameters_ + parameter] += up[row];
      continue;
    }
    const double *a = at(node.a), *b = node.b < 0 ? a : at(node.b);
    const auto& logs = logs_[index(node.a)];
    add_slopes({node.op, a, b, own.data() + i * block_rows, logs.empty() ? nullptr : logs.data() + first, up, to(node.a), to(node.b)}, count);
  }
}

}  // namespace fitting

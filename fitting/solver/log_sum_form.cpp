// Finds the form of a log sum in a law's formula: a sum of terms, each a product of one coefficient (a parameter of logarithmic
// scale), columns of the rows, and columns to the power of a parameter.
#include <algorithm>
#include <cmath>

#include "fitting/solver/log_sum.h"
#include "fitting/solver/log_sum_kernel.h"
#include "fitting/solver/row_formula.h"

namespace fitting {
namespace {

using Op = Formula::Op;

class Reader {
 public:
  Reader(const Law& law, const RowFormula& formula) : law_(law), formula_(formula), used_(law.parameters.size(), false) {}

  bool terms(int node, std::vector<LogSum::Term>& out) {
    const auto& n = at(node);
    if (n.op == Op::add) return terms(n.a, out) && terms(n.b, out);
    LogSum::Term term;
    coefficient_.reset();
    if (!product(node, 1.0, term) || !coefficient_ || used_[*coefficient_]) return false;
    used_[*coefficient_] = true;
    term.coefficient = *coefficient_;
    out.push_back(std::move(term));
    return true;
  }


 private:
  const Formula::Node& at(int node) const { return formula_.formula().nodes()[static_cast<std::size_t>(node)]; }

  // Multiplies the term by the node to the power `sign`.
  bool product(int node, double sign, LogSum::Term& term) {
    if (formula_.of_data(node)) return add_offset(node, sign, term);
    const auto& n = at(node);
    if (const auto parameter = formula_.parameter(node)) return take_coefficient(*parameter, sign);
    if (n.op == Op::multiply) return product(n.a, sign, term) && product(n.b, sign, term);
    if (n.op == Op::divide) return product(n.a, sign, term) && product(n.b, -sign, term);
    if (n.op == Op::exp) return power(n.a, sign, term);
    return false;
  }

  bool take_coefficient(std::size_t parameter, double sign) {
    if (sign < 0.0 || coefficient_ || law_.parameters[parameter].scale != Scale::log) return false;
    coefficient_ = parameter;
    return true;
  }

  bool add_offset(int node, double sign, LogSum::Term& term) {
    const auto& column = formula_.column(node);
    term.offset.resize(column.size(), 0.0);
    for (std::size_t row = 0; row < column.size(); ++row) {
      if (!(column[row] > 0.0)) return false;
      term.offset[row] += sign * std::log(column[row]);
    }
    return true;
  }

  // exp(parameter * column), in either order, under signs.
  bool power(int node, double sign, LogSum::Term& term) {
    const auto& n = at(node);
    if (n.op == Op::negate) return power(n.a, -sign, term);
    if (n.op != Op::multiply) return false;
    int exponent = n.a, column = n.b;
    if (formula_.of_data(exponent)) std::swap(exponent, column);
    if (!formula_.of_data(column)) return false;
    while (at(exponent).op == Op::negate) {
      exponent = at(exponent).a;
      sign = -sign;
    }
    const auto parameter = formula_.parameter(exponent);
    if (!parameter || law_.parameters[*parameter].scale != Scale::linear) return false;
    LogSum::Factor factor{*parameter, formula_.column(column)};
    for (double& v : factor.column) v *= sign;
    if (!std::all_of(factor.column.begin(), factor.column.end(), [](double v) { return std::isfinite(v); })) return false;
    term.factors.push_back(std::move(factor));
    return true;
  }

  const Law& law_;
  const RowFormula& formula_;
  std::optional<std::size_t> coefficient_;
  std::vector<bool> used_;
};

}  // namespace

std::optional<LogSum> log_sum_of(const Law& law, const Rows& rows) {
  const RowFormula formula(law, rows.columns, rows.size());
  LogSum model;
  model.parameters = law.parameters.size();
  Reader reader(law, formula);
  if (!reader.terms(formula.formula().result(), model.terms) || !LogSumKernel::takes(model)) return std::nullopt;
  // Constants last, one order for all ways to write a law.
  std::stable_sort(model.terms.begin(), model.terms.end(), [](const auto& a, const auto& b) { return a.factors.size() > b.factors.size(); });
  for (const double measured : rows.measured) model.target.push_back(std::log(measured));
  return model;
}

}  // namespace fitting

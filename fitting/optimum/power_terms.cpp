#include "fitting/optimum/power_terms.h"

#include <cmath>

namespace fitting {
namespace {

class Reader {
 public:
  Reader(const Formula& formula, std::span<const double> symbols) : formula_(formula), symbols_(symbols) {}

  std::optional<PowerTerm> term(int at) const {
    using Op = Formula::Op;
    const auto& node = this->node(at);
    switch (node.op) {
      case Op::number: return PowerTerm{node.number, 0.0, 0.0};
      case Op::symbol: return symbol(node.a);
      case Op::multiply: return product(term(node.a), term(node.b), 1.0);
      case Op::divide: return product(term(node.a), term(node.b), -1.0);
      case Op::power: return raised(term(node.a), term(node.b));
      case Op::sqrt: return raised(term(node.a), PowerTerm{0.5, 0.0, 0.0});
      case Op::exp: return exponential(node.a);
      default: return constant_of(node);
    }
  }

  // Adds the terms of a sum; false where one is none.
  bool add(int at, double sign, TwoTerms& sum) const {
    const auto& node = this->node(at);
    if (node.op == Formula::Op::add) return add(node.a, sign, sum) && add(node.b, sign, sum);
    if (node.op == Formula::Op::subtract) return add(node.a, sign, sum) && add(node.b, -sign, sum);
    const auto read = term(at);
    if (!read) return false;
    const double c = sign * read->c;
    if (read->n == 0.0 && read->d == 0.0) {
      sum.E += c;
    } else if (read->d == 0.0 && sum.A == 0.0) {
      sum.A = c;
      sum.alpha = -read->n;
    } else if (read->n == 0.0 && sum.B == 0.0) {
      sum.B = c;
      sum.beta = -read->d;
    } else {
      return false;
    }
    return true;
  }

 private:
  const Formula::Node& node(int at) const { return formula_.nodes()[static_cast<std::size_t>(at)]; }

  std::optional<PowerTerm> symbol(int place) const {
    const auto at = static_cast<std::size_t>(place);
    const auto& name = formula_.symbols()[at];
    if (name == "N") return PowerTerm{1.0, 1.0, 0.0};
    if (name == "D") return PowerTerm{1.0, 0.0, 1.0};
    return PowerTerm{symbols_[at], 0.0, 0.0};
  }

  // Any operation on what depends on neither.
  std::optional<PowerTerm> constant_of(const Formula::Node& node) const {
    const auto a = term(node.a), b = node.b < 0 ? PowerTerm{} : term(node.b);
    if (!a || !b || a->n != 0.0 || a->d != 0.0 || b->n != 0.0 || b->d != 0.0) {
      return node.op == Formula::Op::negate && a ? std::optional(PowerTerm{-a->c, a->n, a->d}) : std::nullopt;
    }
    return PowerTerm{apply(node, a->c, b->c), 0.0, 0.0};
  }

  static std::optional<PowerTerm> product(const std::optional<PowerTerm>& a, const std::optional<PowerTerm>& b, double exponent) {
    if (!a || !b) return std::nullopt;
    return PowerTerm{exponent > 0.0 ? a->c * b->c : a->c / b->c, a->n + exponent * b->n, a->d + exponent * b->d};
  }

  static std::optional<PowerTerm> raised(const std::optional<PowerTerm>& a, const std::optional<PowerTerm>& exponent) {
    if (!a || !exponent || exponent->n != 0.0 || exponent->d != 0.0) return std::nullopt;
    return PowerTerm{std::pow(a->c, exponent->c), a->n * exponent->c, a->d * exponent->c};
  }

  // A formula has x^y as exp(y log x).
  std::optional<PowerTerm> exponential(int at) const {
    const auto& inner = node(at);
    if (inner.op == Formula::Op::multiply && node(inner.b).op == Formula::Op::log) {
      if (const auto read = raised(term(node(inner.b).a), term(inner.a))) return read;
    }
    const auto exponent = term(at);
    if (!exponent || exponent->n != 0.0 || exponent->d != 0.0) return std::nullopt;
    return PowerTerm{std::exp(exponent->c), 0.0, 0.0};
  }

  const Formula& formula_;
  std::span<const double> symbols_;
};

}  // namespace

std::optional<PowerTerm> power_term(const Formula& formula, std::span<const double> symbols) {
  return Reader(formula, symbols).term(formula.result());
}

std::optional<TwoTerms> two_terms(const Formula& formula, std::span<const double> symbols) {
  TwoTerms sum;
  if (!Reader(formula, symbols).add(formula.result(), 1.0, sum)) return std::nullopt;
  const bool falls = sum.A > 0.0 && sum.B > 0.0 && sum.alpha > 0.0 && sum.beta > 0.0;
  return falls && std::isfinite(sum.A) && std::isfinite(sum.B) && std::isfinite(sum.E) ? std::optional(sum) : std::nullopt;
}

}  // namespace fitting

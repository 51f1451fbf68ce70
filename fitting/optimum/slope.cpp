#include "fitting/optimum/slope.h"

#include <cmath>

#include "core/error.h"

namespace fitting {
namespace {

// d f = f_a da + f_b db, where nothing that stands still counts, however steep.
Slope chain(double value, const Slope& a, double by_a, const Slope& b, double by_b) {
  Slope made{value, {}};
  for (std::size_t i = 0; i < made.along.size(); ++i) {
    if (a.along[i] != 0.0) made.along[i] += by_a * a.along[i];
    if (b.along[i] != 0.0) made.along[i] += by_b * b.along[i];
  }
  return made;
}

Slope apply_slope(const Formula::Node& node, const Slope& a, const Slope& b) {
  using Op = Formula::Op;
  const double value = apply(node, a.value, b.value);
  switch (node.op) {
    case Op::number: return {value, {}};
    case Op::symbol: return a;
    case Op::add: return chain(value, a, 1.0, b, 1.0);
    case Op::subtract: return chain(value, a, 1.0, b, -1.0);
    case Op::multiply: return chain(value, a, b.value, b, a.value);
    case Op::divide: return chain(value, a, 1.0 / b.value, b, -value / b.value);
    case Op::power: return chain(value, a, b.value * std::pow(a.value, b.value - 1.0), b, value * std::log(a.value));
    case Op::negate: return chain(value, a, -1.0, b, 0.0);
    case Op::exp: return chain(value, a, value, b, 0.0);
    case Op::log: return chain(value, a, 1.0 / a.value, b, 0.0);
    case Op::sqrt: return chain(value, a, 0.5 / value, b, 0.0);
    case Op::abs: return chain(value, a, a.value < 0.0 ? -1.0 : 1.0, b, 0.0);
    case Op::min: return b.value < a.value ? b : a;
    case Op::max: return a.value < b.value ? b : a;
  }
  return {std::nan(""), {}};
}

}  // namespace

Slope slope_of(const Formula& formula, std::span<const Slope> symbols, std::vector<Slope>& nodes) {
  CORE_ASSERT(symbols.size() == formula.symbols().size());
  const Slope nothing;
  nodes.resize(formula.nodes().size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& node = formula.nodes()[i];
    const auto& a = node.op == Formula::Op::symbol ? symbols[static_cast<std::size_t>(node.a)]
                    : node.a < 0                   ? nothing
                                                   : nodes[static_cast<std::size_t>(node.a)];
    nodes[i] = apply_slope(node, a, node.b < 0 ? nothing : nodes[static_cast<std::size_t>(node.b)]);
  }
  return nodes[static_cast<std::size_t>(formula.result())];
}

}  // namespace fitting

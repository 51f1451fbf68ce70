#include "fitting/solver/row_operations.h"

#include <algorithm>
#include <cmath>

namespace fitting {
namespace {

using Op = Formula::Op;

template <typename Function>
void each(std::size_t rows, double* out, Function function) {
  for (std::size_t i = 0; i < rows; ++i) out[i] = function(i);
}

template <typename Slope>
void add(std::size_t rows, const double* up, double* to, Slope slope) {
  if (to == nullptr) return;
  for (std::size_t i = 0; i < rows; ++i) to[i] += up[i] == 0.0 ? 0.0 : up[i] * slope(i);
}

void add_power(const RowSlopes& s, std::size_t rows) {
  const auto *a = s.a, *b = s.b, *v = s.v;
  add(rows, s.up, s.to_a, [=](auto i) { return a[i] > 0.0 ? b[i] * v[i] / a[i] : b[i] * std::pow(a[i], b[i] - 1.0); });
  if (s.log_a != nullptr) {
    add(rows, s.up, s.to_b, [=, log_a = s.log_a](auto i) { return a[i] > 0.0 ? v[i] * log_a[i] : 0.0; });
  } else {
    add(rows, s.up, s.to_b, [=](auto i) { return a[i] > 0.0 ? v[i] * std::log(a[i]) : 0.0; });
  }
}

}  // namespace

void apply_rows(Op op, std::size_t rows, const double* a, const double* b, double* out) {
  switch (op) {
    case Op::number: return;
    case Op::symbol: std::copy_n(a, rows, out); return;
    case Op::add: return each(rows, out, [=](auto i) { return a[i] + b[i]; });
    case Op::subtract: return each(rows, out, [=](auto i) { return a[i] - b[i]; });
    case Op::multiply: return each(rows, out, [=](auto i) { return a[i] * b[i]; });
    case Op::divide: return each(rows, out, [=](auto i) { return a[i] / b[i]; });
    case Op::power: return each(rows, out, [=](auto i) { return std::pow(a[i], b[i]); });
    case Op::negate: return each(rows, out, [=](auto i) { return -a[i]; });
    case Op::exp: return each(rows, out, [=](auto i) { return std::exp(a[i]); });
    case Op::log: return each(rows, out, [=](auto i) { return std::log(a[i]); });
    case Op::sqrt: return each(rows, out, [=](auto i) { return std::sqrt(a[i]); });
    case Op::abs: return each(rows, out, [=](auto i) { return std::fabs(a[i]); });
    case Op::min: return each(rows, out, [=](auto i) { return std::min(a[i], b[i]); });
    case Op::max: return each(rows, out, [=](auto i) { return std::max(a[i], b[i]); });
  }
}

void add_slopes(const RowSlopes& s, std::size_t rows) {
  const auto *a = s.a, *b = s.b, *v = s.v;
  const auto by_a = [&](auto slope) { add(rows, s.up, s.to_a, slope); };
  const auto by_b = [&](auto slope) { add(rows, s.up, s.to_b, slope); };
  switch (s.op) {
    case Op::add: return by_a([](auto) { return 1.0; }), by_b([](auto) { return 1.0; });
    case Op::subtract: return by_a([](auto) { return 1.0; }), by_b([](auto) { return -1.0; });
    case Op::multiply: return by_a([=](auto i) { return b[i]; }), by_b([=](auto i) { return a[i]; });
    case Op::divide: return by_a([=](auto i) { return 1.0 / b[i]; }), by_b([=](auto i) { return -v[i] / b[i]; });
    case Op::power: return add_power(s, rows);
    case Op::negate: return by_a([](auto) { return -1.0; });
    case Op::exp: return by_a([=](auto i) { return v[i]; });
    case Op::log: return by_a([=](auto i) { return 1.0 / a[i]; });
    case Op::sqrt: return by_a([=](auto i) { return 0.5 / v[i]; });
    case Op::abs: return by_a([=](auto i) { return a[i] < 0.0 ? -1.0 : 1.0; });
    case Op::min: return by_a([=](auto i) { return a[i] <= b[i] ? 1.0 : 0.0; }), by_b([=](auto i) { return a[i] <= b[i] ? 0.0 : 1.0; });
    case Op::max: return by_a([=](auto i) { return a[i] >= b[i] ? 1.0 : 0.0; }), by_b([=](auto i) { return a[i] >= b[i] ? 0.0 : 1.0; });
    default: return;
  }
}

}  // namespace fitting

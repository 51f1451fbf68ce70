#include "fitting/solver/log_sum_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/error.h"

// The widest vectors the processor has, chosen when the program starts; sanitizers do not go with that.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FITTING_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FITTING_WIDEST
#endif
#define FITTING_INLINE inline __attribute__((always_inline))

namespace fitting {
namespace {

using Vec = double __attribute__((vector_size(64)));
using Bits = std::int64_t __attribute__((vector_size(64)));
using Words = std::uint64_t __attribute__((vector_size(64)));  // bits that may wrap

FITTING_INLINE void load(Vec& v, const double* from) { std::memcpy(&v, from, sizeof v); }

// e^x for x <= 0 to about one unit of the last digit: x = n ln 2 + r, Taylor's series of e^r, |r| <= ln 2 / 2. 0 below -700.
FITTING_INLINE void exp_of(Vec& x) {
  constexpr double round = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer in the low bits
  const Bits tiny = x < -700.0;
  const Vec shifted = x * 1.4426950408889634074 + round;
  const Vec n = shifted - round;
  const Vec r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;  // ln 2 in two parts
  Vec p = r * (1.0 / 479001600.0) + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  Words bits, mantissa;
  std::memcpy(&bits, &shifted, sizeof bits);
  std::memcpy(&mantissa, &p, sizeof mantissa);
  const Words scaled = (mantissa + (bits << 52)) & ~reinterpret_cast<Words>(tiny);
  std::memcpy(&x, &scaled, sizeof x);
}

// ln x for normal x >= 1: x = 2^n m with m in [1/sqrt 2, sqrt 2), ln m = 2 artanh((m - 1) / (m + 1)).
FITTING_INLINE void log_of(Vec& x) {
  Words bits;
  std::memcpy(&bits, &x, sizeof bits);
  const Words exponent = (bits - 0x3fe6a09e667f3bcd) >> 52;  // from 1/sqrt 2
  const Words reduced = bits - (exponent << 52);
  Vec m;
  std::memcpy(&m, &reduced, sizeof m);
  const Words counted = exponent + 0x4338000000000000;  // 1.5 * 2^52 and n in its low bits
  Vec n;
  std::memcpy(&n, &counted, sizeof n);
  n -= 6755399441055744.0;
  const Vec t = (m - 1.0) / (m + 1.0);
  const Vec s = t * t;
  Vec p = s * (1.0 / 21.0) + 1.0 / 19.0;
  p = p * s + 1.0 / 17.0;
  p = p * s + 1.0 / 15.0;
  p = p * s + 1.0 / 13.0;
  p = p * s + 1.0 / 11.0;
  p = p * s + 1.0 / 9.0;
  p = p * s + 1.0 / 7.0;
  p = p * s + 1.0 / 5.0;
  p = p * s + 1.0 / 3.0;
  x = n * 0.693147180559945309417 + 2.0 * t + 2.0 * t * s * p;
}

FITTING_INLINE double sum_of(const Vec& v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

// What the loop over rows reads: plain pointers and sizes.
struct View {
  int terms = 0, entries = 0;
  std::size_t blocks = 0;
  const double* offset[LogSumKernel::max_terms] = {};
  double constant[LogSumKernel::max_terms] = {};            // the sum of a term's coefficients
  int term[LogSumKernel::max_entries] = {};
  const double* column[LogSumKernel::max_entries] = {};
  double theta[LogSumKernel::max_entries] = {};
  const double* target = nullptr;
  const double* weight = nullptr;
  double huber = 0.0;
};

struct Sums {
  double value = 0.0;
  double gradient[LogSumKernel::max_entries] = {};
  double hessian[LogSumKernel::max_entries][LogSumKernel::max_entries] = {};
};

// The shape of a law: how many terms, which of them each entry is of, whether it has a column. Any, read as it runs; or a sum of
// `Powers` terms c / x^p and a constant known to the compiler, which then keeps all of the loop in registers.
struct AnyShape {
  static constexpr int max_terms = LogSumKernel::max_terms, max_entries = LogSumKernel::max_entries;
  static constexpr bool has_offsets = true;
  const View& view;
  int terms() const { return view.terms; }
  int entries() const { return view.entries; }
  int term(int entry) const { return view.term[entry]; }
  bool has_column(int entry) const { return view.column[entry] != nullptr; }
};

template <int Powers>
struct PowersAndConstant {
  static constexpr int max_terms = Powers + 1, max_entries = 2 * Powers + 1;
  static constexpr bool has_offsets = false;
  explicit PowersAndConstant(const View&) {}
  static constexpr int terms() { return max_terms; }
  static constexpr int entries() { return max_entries; }
  static constexpr int term(int entry) { return entry < 2 * Powers ? entry / 2 : Powers; }
  static constexpr bool has_column(int entry) { return entry < 2 * Powers && entry % 2 == 1; }
  static bool fits(const View& view) {
    bool same = view.terms == max_terms && view.entries == max_entries;
    for (int e = 0; same && e < max_entries; ++e) same = view.term[e] == term(e) && (view.column[e] != nullptr) == has_column(e);
    for (int k = 0; same && k < max_terms; ++k) same = view.offset[k] == nullptr;
    return same;
  }
};

template <class Shape>
FITTING_INLINE void add_rows(const View& view, const Shape& shape, Sums& sums) {
  constexpr int max_terms = Shape::max_terms, max_entries = Shape::max_entries;
  Vec value = {};
  Vec gradient[max_entries] = {};
  Vec hessian[max_entries * (max_entries + 1) / 2] = {};
  for (std::size_t block = 0; block < view.blocks; ++block) {
    const std::size_t row = block * LogSumKernel::lanes;
    Vec share[max_terms] = {};
    Vec x[max_entries] = {};
    for (int k = 0; k < shape.terms(); ++k) {
      share[k] = Vec{} + view.constant[k];
      if (!Shape::has_offsets || view.offset[k] == nullptr) continue;
      Vec offset;
      load(offset, view.offset[k] + row);
      share[k] += offset;
    }
    for (int e = 0; e < shape.entries(); ++e) {
      if (!shape.has_column(e)) continue;
      load(x[e], view.column[e] + row);
      share[shape.term(e)] += view.theta[e] * x[e];
    }
    Vec top = share[0];
    for (int k = 1; k < shape.terms(); ++k) top = share[k] > top ? share[k] : top;
    Vec total = {};
    for (int k = 0; k < shape.terms(); ++k) {
      share[k] -= top;
      exp_of(share[k]);
      total += share[k];
    }
    const Vec over = 1.0 / total;
    log_of(total);
    Vec target, weight;
    load(target, view.target + row);
    load(weight, view.weight + row);
    const Vec r = target - (top + total);
    const Vec size = r < 0.0 ? -r : r;
    const Vec within = size <= view.huber ? weight : Vec{};
    const Vec clipped = size <= view.huber ? size : Vec{} + view.huber;
    const Vec psi = weight * (r < 0.0 ? -clipped : clipped);
    value += weight * clipped * (size - 0.5 * clipped);
    const Vec curved = within + psi;
    Vec y[max_entries] = {};
    for (int e = 0; e < shape.entries(); ++e) {
      y[e] = share[shape.term(e)] * over;
      if (shape.has_column(e)) y[e] *= x[e];
      const Vec curved_y = curved * y[e], psi_y = psi * y[e];
      gradient[e] -= psi_y;
      for (int f = 0; f <= e; ++f) {
        Vec& sum = hessian[e * (e + 1) / 2 + f];
        sum += curved_y * y[f];
        if (shape.term(e) == shape.term(f)) sum -= shape.has_column(f) ? psi_y * x[f] : psi_y;
      }
    }
  }
  sums.value = sum_of(value);
  for (int e = 0; e < shape.entries(); ++e) {
    sums.gradient[e] = sum_of(gradient[e]);
    for (int f = 0; f <= e; ++f) sums.hessian[e][f] = sum_of(hessian[e * (e + 1) / 2 + f]);
  }
}

FITTING_WIDEST void add_any(const View& view, Sums& sums) { add_rows(view, AnyShape{view}, sums); }
FITTING_WIDEST void add_one_power(const View& view, Sums& sums) { add_rows(view, PowersAndConstant<1>(view), sums); }
FITTING_WIDEST void add_two_powers(const View& view, Sums& sums) { add_rows(view, PowersAndConstant<2>(view), sums); }

void add_up(const View& view, Sums& sums) {
  if (PowersAndConstant<2>::fits(view)) add_two_powers(view, sums);
  else if (PowersAndConstant<1>::fits(view)) add_one_power(view, sums);
  else add_any(view, sums);
}

double mean_of(const std::vector<double>& column, const std::vector<std::size_t>& rows) {
  double sum = 0.0;
  for (const auto row : rows) sum += column[row];
  return sum / static_cast<double>(rows.size());
}

}  // namespace

bool LogSumKernel::takes(const LogSum& model) {
  std::size_t entries = 0;
  for (const auto& term : model.terms) entries += 1 + term.factors.size();
  return model.terms.size() <= max_terms && entries <= max_entries;
}

LogSumKernel::LogSumKernel(const LogSum& model, const std::vector<double>& weights, const std::vector<std::size_t>& rows) {
  CORE_ASSERT(takes(model) && !rows.empty() && (weights.empty() || weights.size() == model.target.size()));
  terms_ = static_cast<int>(model.terms.size());
  blocks_ = (rows.size() + lanes - 1) / lanes;
  offsets_.fill(-1);
  for (int k = 0; k < terms_; ++k) {
    const auto& term = model.terms[static_cast<std::size_t>(k)];
    entries_.push_back({term.coefficient, term.coefficient, k, -1, 0.0});
    if (!term.offset.empty()) offsets_[static_cast<std::size_t>(k)] = store(term.offset, rows, 0.0);
    for (const auto& factor : term.factors) {
      const double mean = mean_of(factor.column, rows);
      const auto column = store(factor.column, rows, mean);
      entries_.push_back({factor.parameter, term.coefficient, k, column, mean});
    }
  }
  target_ = store(model.target, rows, 0.0);
  weight_ = store(weights.empty() ? std::vector<double>(model.target.size(), 1.0) : weights, rows, 0.0);
}

std::ptrdiff_t LogSumKernel::store(const std::vector<double>& column, const std::vector<std::size_t>& rows, double mean) {
  const auto place = static_cast<std::ptrdiff_t>(numbers_.size());
  for (const auto row : rows) numbers_.push_back(column[row] - mean);
  numbers_.resize(static_cast<std::size_t>(place) + blocks_ * lanes, 0.0);
  return place;
}

double LogSumKernel::evaluate(const std::vector<double>& theta, double huber) {
  const auto column = [&](std::ptrdiff_t place) { return place < 0 ? nullptr : numbers_.data() + place; };
  View view;
  view.terms = terms_;
  view.entries = entries();
  view.blocks = blocks_;
  for (int k = 0; k < terms_; ++k) view.offset[k] = column(offsets_[static_cast<std::size_t>(k)]);
  for (int e = 0; e < view.entries; ++e) {
    const auto& entry = at(e);
    view.term[e] = entry.term;
    view.column[e] = column(entry.column);
    view.theta[e] = theta[entry.parameter];
    if (entry.column < 0) view.constant[entry.term] += theta[entry.parameter];
  }
  view.target = column(target_);
  view.weight = column(weight_);
  view.huber = huber;
  Sums sums;
  add_up(view, sums);
  for (int e = 0; e < view.entries; ++e) {
    gradient_[static_cast<std::size_t>(e)] = sums.gradient[e];
    for (int f = 0; f <= e; ++f) hessian_[static_cast<std::size_t>(e)][static_cast<std::size_t>(f)] = sums.hessian[e][f];
  }
  return sums.value;
}

}  // namespace fitting

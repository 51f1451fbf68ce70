#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

#include "core/error.h"

namespace core {

// A physical quantity: a double that knows its dimension (bytes B, floating-point operations F,
// seconds S as exponents). Sums stay within a unit; products and quotients combine units, so that
// Bytes / BytesPerSecond is Seconds. `.value` is for the edge of a library call only.
template <int B, int F, int S>
struct Quantity {
  double value = 0.0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double v) : value(v) {}

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity o) const { return Quantity{value + o.value}; }
  constexpr Quantity operator-(Quantity o) const { return Quantity{value - o.value}; }
  constexpr Quantity& operator+=(Quantity o) { return value += o.value, *this; }
  constexpr Quantity& operator-=(Quantity o) { return value -= o.value, *this; }
  constexpr Quantity operator*(double k) const { return Quantity{value * k}; }
  constexpr Quantity operator/(double k) const { return Quantity{value / k}; }
  friend constexpr Quantity operator*(double k, Quantity q) { return Quantity{k * q.value}; }
};

template <int B, int F, int S, int B2, int F2, int S2>
constexpr auto operator*(Quantity<B, F, S> a, Quantity<B2, F2, S2> b) {
  if constexpr (B + B2 == 0 && F + F2 == 0 && S + S2 == 0) {
    return a.value * b.value;
  } else {
    return Quantity<B + B2, F + F2, S + S2>{a.value * b.value};
  }
}

template <int B, int F, int S, int B2, int F2, int S2>
constexpr auto operator/(Quantity<B, F, S> a, Quantity<B2, F2, S2> b) {
  if constexpr (B == B2 && F == F2 && S == S2) {
    return a.value / b.value;
  } else {
    return Quantity<B - B2, F - F2, S - S2>{a.value / b.value};
  }
}

using Bytes = Quantity<1, 0, 0>;
using Flops = Quantity<0, 1, 0>;
using Seconds = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<1, 0, -1>;
using FlopsPerSecond = Quantity<0, 1, -1>;

inline constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;
inline constexpr double mebibyte = 1024.0 * 1024.0;

constexpr Bytes gibibytes(double n) { return Bytes{n * gibibyte}; }
constexpr double in_gibibytes(Bytes b) { return b.value / gibibyte; }

namespace literals {
constexpr Bytes operator""_GiB(long double n) { return Bytes{static_cast<double>(n) * gibibyte}; }
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes{static_cast<double>(n) * gibibyte};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes{static_cast<double>(n) * mebibyte};
}
constexpr BytesPerSecond operator""_GBps(long double n) {
  return BytesPerSecond{static_cast<double>(n) * 1e9};
}
constexpr FlopsPerSecond operator""_TFLOPs(long double n) {
  return FlopsPerSecond{static_cast<double>(n) * 1e12};
}
constexpr Seconds operator""_us(long double n) { return Seconds{static_cast<double>(n) * 1e-6}; }
constexpr Seconds operator""_us(unsigned long long n) {
  return Seconds{static_cast<double>(n) * 1e-6};
}
}  // namespace literals

// The simulated clock of a step: whole picoseconds, 64 bits (106 days), so that events tie exactly
// and runs repeat on every machine.
using SimTime = std::int64_t;

// The one place where Seconds become SimTime: the nearest picosecond. Requires 0 <= t < 106 days.
inline SimTime to_sim_time(Seconds t) {
  CORE_ASSERT(t.value >= 0.0 && t.value < 9.0e6);
  return static_cast<SimTime>(std::llround(t.value * 1e12));
}

constexpr Seconds to_seconds(SimTime t) { return Seconds{static_cast<double>(t) * 1e-12}; }

}  // namespace core

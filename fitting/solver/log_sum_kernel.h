#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "fitting/solver/log_sum.h"

namespace fitting {

// Sum of weighted Huber losses of a LogSum over all rows, with gradient and Hessian, eight rows at a time. An entry is what a
// parameter multiplies in a term: 1 for a coefficient, a column for a power.
class LogSumKernel {
 public:
  static constexpr int max_terms = 8, max_entries = 16, lanes = 8;
  static bool takes(const LogSum& model);  // it has no more terms and entries

  // Of the given rows, at least one. No weights: 1 each.
  LogSumKernel(const LogSum& model, const std::vector<double>& weights, const std::vector<std::size_t>& rows);

  // With r_i = target_i - ln L_i, psi = clip(r, -huber, huber), q_k the share of term k:
  //   S = sum w H(r),  dS/de = -sum w psi q_k(e) x_e,
  //   d2S/de df = sum w ([|r| <= huber] + psi) q_k(e) x_e q_k(f) x_f - [k(e) = k(f)] w psi q_k(e) x_e x_f
  // `theta`: the parameters, coefficients for columns of mean 0. Derivatives stay until the next call.
  double evaluate(const std::vector<double>& theta, double huber);

  int entries() const { return static_cast<int>(entries_.size()); }
  std::size_t parameter(int entry) const { return at(entry).parameter; }
  std::size_t coefficient(int entry) const { return at(entry).coefficient; }  // of the entry's term
  double mean(int entry) const { return at(entry).mean; }                     // that was taken off its column
  double gradient(int entry) const { return gradient_[static_cast<std::size_t>(entry)]; }
  double hessian(int entry, int lower) const { return hessian_[static_cast<std::size_t>(entry)][static_cast<std::size_t>(lower)]; }

 private:
  struct Entry {
    std::size_t parameter = 0, coefficient = 0;
    int term = 0;
    std::ptrdiff_t column = -1;  // of `numbers_`; none: 1
    double mean = 0.0;
  };
  const Entry& at(int entry) const { return entries_[static_cast<std::size_t>(entry)]; }
  std::ptrdiff_t store(const std::vector<double>& column, const std::vector<std::size_t>& rows, double mean);

  std::vector<Entry> entries_;
  int terms_ = 0;
  std::array<std::ptrdiff_t, max_terms> offsets_{};  // columns; -1: 0
  std::size_t blocks_ = 0;
  std::ptrdiff_t target_ = 0, weight_ = 0;
  std::vector<double> numbers_;  // columns one after another, each of blocks_ * lanes rows, padded with weight 0
  std::array<double, max_entries> gradient_{};
  std::array<std::array<double, max_entries>, max_entries> hessian_{};
};

}  // namespace fitting

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fitting/law.h"
#include "fitting/solver/log_sum.h"
#include "fitting/solver/row_formula.h"

namespace fitting {

// Where a search ended: parameters as the formula has them.
struct Minimum {
  std::vector<double> parameters;
  double objective = 0.0;  // sum of Huber losses of ln(measured / law)
  bool converged = false;
};

// A minimum and how many starts led to it.
struct Basin {
  Minimum minimum;
  std::int64_t starts = 0;
};

// Fits a law to rows:
//   S = sum_i w_i H(ln L_i - ln L(x_i)),  H(r) = r^2 / 2 to |r| = huber, then linear (Hoffmann et al. 2022, Eq. 3).
// The sum, not its mean: stop tests see the mean of such losses as nothing. Log sums go by their own kernel, all other laws by
// Ceres and then Newton's steps on the same objective.
class Solver {
 public:
  // Throws InputError where the formula uses unknown names. Measured values must be positive.
  Solver(Law law, Rows rows, double huber);
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  const Law& law() const { return law_; }
  const Rows& rows() const { return rows_; }
  double huber() const { return huber_; }
  bool batched() const { return log_sum_.has_value(); }
  void use_general() { log_sum_.reset(); }  // for tests: Ceres also where the law is a log sum

  // Down from every start (search scale, see starts_of), first with least squares; those that meet there go on as one. Basins by
  // objective, those within 1e-7 of each other and of like parameters joined. Empty where no start was usable. The result does
  // not depend on the number of threads.
  std::vector<Basin> from_starts(const std::vector<std::vector<double>>& starts, const std::vector<double>& weights = {}) const;

  // How many ways down from_starts tries from so many starts: laws that are not log sums go down from each twice, also at once with
  // the threshold itself.
  std::int64_t descents(std::size_t starts) const;

  // Down from a point near the minimum, given as the formula has it.
  Minimum from(const std::vector<double>& parameters, const std::vector<double>& weights = {}) const;

  // S at a point. Infinite where the law is not positive.
  double objective(const std::vector<double>& parameters, const std::vector<double>& weights = {}) const;

  // The same law and rows with other measured values.
  std::unique_ptr<Solver> with_measured(std::vector<double> measured) const;

  // ln(measured / law) of each row.
  std::vector<double> residuals(const std::vector<double>& parameters) const;

 private:
  struct Coarse {
    std::vector<double> x;
    double objective = 0.0;
    bool usable = false;
  };
  std::unique_ptr<Objective> objective_of(const std::vector<double>& weights) const;
  Coarse coarse(const std::vector<double>& start, const std::vector<double>& weights) const;
  Minimum finish(std::vector<double> x, const std::vector<double>& weights) const;
  void add_direct(const std::vector<std::vector<double>>& starts, const std::vector<double>& weights, std::vector<Basin>& basins) const;
  Minimum down(std::vector<double> x, const std::vector<double>& weights) const;

  Law law_;
  Rows rows_;
  double huber_;
  Bounds bounds_;
  RowFormula formula_;
  std::optional<LogSum> log_sum_;
};

// All combinations of a law's starts, and more between them where it has one or two parameters; where they are more than `most`,
// `most` of them spread evenly.
std::vector<std::vector<double>> starts_of(const Law& law, std::int64_t most);

}  // namespace fitting

#pragma once

#include <cstddef>

#include "fitting/formula.h"

namespace fitting {

// One operation over many rows, the choice of the operation outside of the loop.

// out[row] = op(a[row], b[row]); of one operand, b is not read.
void apply_rows(Formula::Op op, std::size_t rows, const double* a, const double* b, double* out);

// A node's values and derivatives for reverse differentiation.
struct RowSlopes {
  Formula::Op op = Formula::Op::number;
  const double *a = nullptr, *b = nullptr, *v = nullptr;  // operands, and the node's own values
  const double* log_a = nullptr;                          // logarithms of a where they are known; else computed
  const double* up = nullptr;                             // derivative of the result by this node
  double *to_a = nullptr, *to_b = nullptr;                // sums for the operands; null where they do not depend on parameters
};

// to_a[row] += up[row] * dv/da, and the same for b. Rows where `up` is 0 add nothing, even where dv/da is not finite: they are
// of the other branch of a min or max.
void add_slopes(const RowSlopes& slopes, std::size_t rows);

}  // namespace fitting

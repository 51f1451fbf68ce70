#pragma once

#include <optional>
#include <vector>

#include "fitting/formula.h"
#include "fitting/law.h"

namespace fitting {

// Rows to fit: a column for each variable of the law, and what was measured.
struct Rows {
  std::vector<std::vector<double>> columns;  // [variable][row]
  std::vector<double> measured;              // [row], positive
  std::size_t size() const { return measured.size(); }
};

// A law's formula on the rows of its variables: parts that depend on the rows alone are computed once.
class RowFormula {
 public:
  RowFormula(const Law& law, const std::vector<std::vector<double>>& columns, std::size_t rows);

  // Values of all rows; where `jacobian` is not null, derivatives by each parameter at row * parameters + parameter (reverse
  // differentiation). Parameters in the law's order, none as a logarithm.
  void evaluate(const std::vector<double>& parameters, std::vector<double>& values, std::vector<double>* jacobian) const;

  const Formula& formula() const { return formula_; }
  std::size_t rows() const { return rows_; }
  bool of_data(int node) const { return !depends_[index(node)]; }  // the same whatever the parameters
  const std::vector<double>& column(int node) const { return data_[index(node)]; }  // requires of_data
  std::optional<std::size_t> parameter(int node) const;            // that a node is, if it is one

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  void set_alike(const std::vector<double>& parameters, std::vector<double>& own) const;
  void block(std::size_t first, std::size_t count, std::vector<double>& own, std::vector<double>& values,
             std::vector<double>* jacobian) const;
  void reverse(std::size_t first, std::size_t count, const std::vector<double>& own, std::vector<double>& jacobian) const;

  Formula formula_;
  std::size_t rows_ = 0, parameters_ = 0;
  std::vector<std::optional<std::size_t>> parameter_of_;  // [symbol]
  std::vector<bool> depends_;                             // [node] on a parameter
  std::vector<bool> alike_;                               // [node] depends on parameters alone: the same on all rows
  std::vector<std::vector<double>> data_;                 // [node][row] where it depends on none
  std::vector<std::vector<double>> logs_;                 // [node][row] logarithms of data that is raised to a power
};

}  // namespace fitting

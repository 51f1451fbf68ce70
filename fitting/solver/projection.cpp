#include "fitting/solver/projection.h"

#include <Eigen/QR>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace fitting {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::size_t grid = 25;    // exponents along each side
constexpr std::size_t deepest = 4;  // cells of the grid from which simplices start

using Point = std::array<double, 2>;  // ln alpha, ln beta

class Projection {
 public:
  Projection(const std::vector<double>& N, const std::vector<double>& D, const std::vector<double>& L, const std::vector<double>& weights) : L_(L.size()), root_(L.size()) {
    CORE_ASSERT(L.size() > 3 && N.size() == L.size() && D.size() == L.size() && (weights.empty() || weights.size() == L.size()));
    ln_N_.resize(L_.size()), ln_D_.resize(L_.size());
    for (Eigen::Index i = 0; i < L_.size(); ++i) {
      const auto k = static_cast<std::size_t>(i);
      ln_N_(i) = std::log(N[k]), ln_D_(i) = std::log(D[k]), L_(i) = L[k];
      root_(i) = weights.empty() ? 1.0 : std::sqrt(weights[k]);
    }
    middle_N_ = ln_N_.mean(), middle_D_ = ln_D_.mean();
  }

  // E, A and B at the exponents: those of the best of the faces of E, A, B >= 0 on which the least squares lie within it.
  Projected at(const Point& p) const {
    Projected best{0.0, 0.0, 0.0, std::exp(p[0]), std::exp(p[1]), infinite, false};
    Eigen::MatrixX3d columns(L_.size(), 3);
    columns.col(0) = root_;
    columns.col(1) = root_.array() * (-best.alpha * (ln_N_.array() - middle_N_)).exp();
    columns.col(2) = root_.array() * (-best.beta * (ln_D_.array() - middle_D_)).exp();
    const Eigen::VectorXd y = root_.array() * L_.array();
    for (const unsigned face : {7U, 6U, 5U, 3U, 4U, 2U, 1U}) {
      Eigen::Vector3d x = solved(columns, y, face);
      if ((x.array() < 0.0).any() || !x.allFinite()) continue;
      const double squares = (y - columns * x).squaredNorm();
      if (squares < best.squares) best = {x(0), x(1) * std::exp(best.alpha * middle_N_), x(2) * std::exp(best.beta * middle_D_), best.alpha, best.beta, squares, false};
      if (face == 7U) break;  // least squares without bounds are least with them
    }
    return best;
  }

  double squares(const Point& p) const {
    for (const double x : p) {
      if (x < std::log(least_exponent) || x > std::log(largest_exponent)) return infinite;
    }
    return at(p).squares;
  }

 private:
  // Least squares in the columns whose bit is set, 0 for the others.
  static Eigen::Vector3d solved(const Eigen::MatrixX3d& columns, const Eigen::VectorXd& y, unsigned face) {
    std::vector<Eigen::Index> kept;
    for (Eigen::Index j = 0; j < 3; ++j) {
      if ((face >> j & 1U) != 0) kept.push_back(j);
    }
    Eigen::MatrixXd some(columns.rows(), static_cast<Eigen::Index>(kept.size()));
    for (std::size_t j = 0; j < kept.size(); ++j) some.col(static_cast<Eigen::Index>(j)) = columns.col(kept[j]);
    const Eigen::VectorXd x = some.colPivHouseholderQr().solve(y);
    Eigen::Vector3d all = Eigen::Vector3d::Zero();
    for (std::size_t j = 0; j < kept.size(); ++j) all(kept[j]) = x(static_cast<Eigen::Index>(j));
    return all;
  }

  Eigen::VectorXd ln_N_, ln_D_, L_, root_;
  double middle_N_ = 0.0, middle_D_ = 0.0;
};

struct Corner {
  Point at;
  double squares;
};

Point between(const Point& a, const Point& b, double share) { return {a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])}; }

// Nelder and Mead's simplex in the plane, until its corners lie within `size`.
Corner simplex(const Projection& projection, const Point& start, double step) {
  constexpr double size = 1e-12;
  const auto corner = [&](const Point& p) { return Corner{p, projection.squares(p)}; };
  std::array<Corner, 3> s = {corner(start), corner({start[0] + step, start[1]}), corner({start[0], start[1] + step})};
  for (int i = 0; i < 500; ++i) {
    std::stable_sort(s.begin(), s.end(), [](const auto& a, const auto& b) { return a.squares < b.squares; });
    if (std::hypot(s[2].at[0] - s[0].at[0], s[2].at[1] - s[0].at[1]) < size && std::hypot(s[1].at[0] - s[0].at[0], s[1].at[1] - s[0].at[1]) < size) break;
    const auto centre = between(s[0].at, s[1].at, 0.5);
    auto moved = corner(between(s[2].at, centre, 2.0));
    if (moved.squares < s[0].squares) {
      const auto further = corner(between(s[2].at, centre, 3.0));
      if (further.squares < moved.squares) moved = further;
    } else if (!(moved.squares < s[1].squares)) {
      const auto inner = corner(between(s[2].at, centre, moved.squares < s[2].squares ? 1.5 : 0.5));
      if (inner.squares < std::min(moved.squares, s[2].squares)) moved = inner;
      else moved.squares = infinite;
    }
    if (moved.squares < s[2].squares) {
      s[2] = moved;
    } else {
      for (std::size_t k = 1; k < 3; ++k) s[k] = corner(between(s[0].at, s[k].at, 0.5));
    }
  }
  return *std::min_element(s.begin(), s.end(), [](const auto& a, const auto& b) { return a.squares < b.squares; });
}

// The best cells of the grid that no neighbour betters.
std::vector<Point> starts_of(const Projection& projection, double step) {
  std::vector<Corner> cells;
  for (std::size_t i = 0; i < grid * grid; ++i) {
    const Point p = {std::log(least_exponent) + step * static_cast<double>(i / grid), std::log(least_exponent) + step * static_cast<double>(i % grid)};
    cells.push_back({p, projection.squares(p)});
  }
  std::vector<Corner> lowest;
  for (const auto& cell : cells) {
    const bool bettered = std::any_of(cells.begin(), cells.end(), [&](const auto& other) {
      return other.squares < cell.squares && std::fabs(other.at[0] - cell.at[0]) < 1.5 * step && std::fabs(other.at[1] - cell.at[1]) < 1.5 * step;
    });
    if (!bettered && std::isfinite(cell.squares)) lowest.push_back(cell);
  }
  std::stable_sort(lowest.begin(), lowest.end(), [](const auto& a, const auto& b) { return a.squares < b.squares; });
  std::vector<Point> starts;
  for (std::size_t i = 0; i < std::min(lowest.size(), deepest); ++i) starts.push_back(lowest[i].at);
  return starts;
}

bool inside(double exponent) { return exponent > 1.001 * least_exponent && exponent < 0.999 * largest_exponent; }

}  // namespace

Projected project(const std::vector<double>& N, const std::vector<double>& D, const std::vector<double>& L, const std::vector<double>& weights,
                  const std::optional<Projected>& near) {
  const Projection projection(N, D, L, weights);
  const double step = std::log(largest_exponent / least_exponent) / (grid - 1);
  const auto starts = near ? std::vector<Point>{{std::log(near->alpha), std::log(near->beta)}} : starts_of(projection, step);
  Corner best{{0.0, 0.0}, infinite};
  for (const auto& start : starts) {
    // Again from where it ended: a simplex may have closed before the minimum.
    auto found = simplex(projection, start, 0.5 * step);
    for (int i = 0; i < 2; ++i) found = simplex(projection, found.at, 0.02 * step);
    if (found.squares < best.squares) best = found;
  }
  auto result = projection.at(best.at);
  result.converged = std::isfinite(best.squares) && inside(result.alpha) && inside(result.beta);
  return result;
}

}  // namespace fitting

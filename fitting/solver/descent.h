#pragma once

#include <vector>

namespace fitting {

// A sum of Huber losses over rows as a function of parameters, the threshold given with each call.
class Objective {
 public:
  virtual ~Objective() = default;
  virtual double at(const std::vector<double>& x, double huber) = 0;
  // Gradient [parameter] and Hessian [parameter * parameters + parameter] at the last point, in the coordinates of `to`.
  virtual void derivatives(std::vector<double>& gradient, std::vector<double>& hessian) = 0;
  // Coordinates in which parameters are less alike; the same by default.
  virtual std::vector<double> to(const std::vector<double>& x) const { return x; }
  virtual std::vector<double> from(const std::vector<double>& y) const { return y; }
  int evaluations = 0;
};

struct Bounds {
  std::vector<double> low, high;
};

struct DescentOptions {
  double huber = 1e-3;
  double tolerance = 1e-15;  // a step that wins less than this share of the objective is the last
  int steps = 300;
};

// Follows an objective down from x, in place: Newton's steps, damped where it is not convex or they do not lead down
// (Levenberg 1944), onto the bounds where they lead out. With Huber's losses near the minimum it is quadratic piece by piece,
// and ends exactly. True where it converged.
bool descend(Objective& objective, const Bounds& bounds, const DescentOptions& options, std::vector<double>& x);

}  // namespace fitting

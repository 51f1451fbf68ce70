#pragma once

#include <vector>

namespace fitting {

// A curve through points that follows them without the swings of a cubic spline (Akima 1970): a cubic between neighbours, slopes
// at each point from the four lines nearest it.
class Akima {
 public:
  // Points in any order; those of equal x stand for their mean. Requires at least three different x.
  Akima(std::vector<double> x, std::vector<double> y);

  double at(double x) const;
  // Where it is least between the first and the last point.
  double minimum() const;

 private:
  double within(std::size_t piece, double share) const;

  std::vector<double> x_, y_, slopes_;
};

}  // namespace fitting

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace fitting {

// Values that have something in common beyond what all groups share: residuals of one source.
struct ValueGroup {
  std::vector<double> values, weights;  // of each value within the group; equal sizes, positive weights
  double weight = 1.0;                  // of the group among groups
};

// value = centre + between * T + within * Z: T of the group, Student's t; Z of the value, standard normal. A group that lies
// far out so widens the spread less than under a normal distribution.
struct TwoLevel {
  double centre = 0.0, between = 0.0, within = 0.0;
  double groups = 0.0;  // that the centre rests on: (sum w)^2 / sum w^2, with those of the prior
};

// What a few groups are drawn to: a wider class, as if it were `groups` more of them.
struct TwoLevelPrior {
  TwoLevel of;
  double groups = 0.0;
};

// Estimates all three. Means of groups: maximum likelihood of Student's t with `degrees` of freedom by expectation
// maximisation (Lange, Little & Taylor 1989), with the weights of groups brought to their effective number; `within` pools the
// variances of groups of two values or more. Without a prior, at least two groups with values; contracts.
TwoLevel two_level(const std::vector<ValueGroup>& groups, double degrees, const std::optional<TwoLevelPrior>& prior);

struct CentralInterval {
  double low = 0.0, high = 0.0;
};
// Where the share `share` of the values of a group that was not among them is expected: centre +- the root of the summed
// squares of both levels' quantiles, the uncertainty of the centre included.
CentralInterval interval_of_new_group(const TwoLevel& estimate, double degrees, double share);

// Value below which the share `q` of the weight lies: linear between midpoints of the weights. Requires positive weights.
double weighted_quantile(std::vector<double> values, std::vector<double> weights, double q);

}  // namespace fitting

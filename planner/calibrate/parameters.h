#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/io/document.h"

namespace planner {

// A number or a list of numbers of data/ that a calibration changes, as it stands before.
struct Target {
  std::string folder, name;  // "curves", "hopper"
  std::string key;           // dotted, "sustained.rate"
  std::vector<double> start;
  std::optional<std::size_t> element;  // one number of a list alone; then `start` has that one

  std::string file() const { return folder + "/" + name + ".json"; }  // below data/
};

// A constant of a system. A fit finds one factor for all targets, so that a list keeps its shape
// and numbers that are known to go together (forward and backward rate) keep their ratio. Bounds
// are of the first number of the first target.
struct Parameter {
  std::string name, meaning;
  std::vector<Target> targets;
  double low = 0.0, high = 0.0;
  double log_sigma = 0.0;  // of a normal prior on the logarithm of the factor
  std::string reason;      // for that prior

  double start() const { return targets.front().start.front(); }
};

// What may be fitted and how much each measurement counts: data/calibration/parameters.json, or a fit of
// data/calibration/kernels.json.
struct CalibrationSpec {
  std::string measures = "step time";  // what is predicted and measured
  std::vector<Parameter> parameters;
  double noise = 0.0;  // standard deviation of log(predicted / measured) that rows have anyhow
  double huber = 0.0;  // |log(predicted / measured)| beyond which a row pulls no harder
  double source_most = 0.0;                      // most that the rows of a source weigh together
  std::map<std::string, double> source_weights;  // factor for sources that are known to mislead
};

// Throws InputError naming file and key: unknown or missing members, bounds that do not hold the
// start, a name or a target that stands twice, a target that its file does not have.
CalibrationSpec read_calibration(const std::filesystem::path& file);

// The same of parts of such a file: its noise, huber and source_most; the parameters of a list, where
// "each" names the numbers of the targets' lists where they are fitted one by one. `targets` holds those
// that earlier lists have.
void read_noise(const core::Document& root, CalibrationSpec& spec);
std::vector<Parameter> read_parameters(const core::Document& list, std::set<std::string>& targets);

// What the rows of a source weigh each, n of them: together sqrt(n), `most` at most.
double weight_of_each(std::size_t n, double most);

}  // namespace planner

#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/calibrate/parameters.h"
#include "simulator/cost/cost.h"

namespace planner {

using CurvesByGpu = std::map<std::string, simulator::Curves>;

// The curves of some GPUs with other values of parameters. A parameter reaches a GPU when the GPU
// reads a number from one of its files: a number of data/curves/<gpu>.json hides that of the
// architecture. Keeps a reference to the parameters.
class CurveTargets {
 public:
  CurveTargets(const std::vector<Parameter>& parameters, CurvesByGpu shipped);

  bool reaches(std::size_t parameter, const std::string& gpu) const;

  // The curves of all GPUs with each parameter at its start times exp(x).
  CurvesByGpu at(const std::vector<double>& x) const;

 private:
  struct Read {
    std::size_t parameter = 0;
    const Target* target = nullptr;
  };
  CurvesByGpu shipped_;
  std::map<std::string, std::vector<Read>> reads_;  // by GPU
};

}  // namespace planner

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace simulator {

struct Setting;
class Curves;

// Frameworks whose runs are taken to be alike, by their names in data/frameworks.
struct SoftwareGroup {
  std::string name;
  std::vector<std::string> frameworks;
};

// What a run has in common with others: how far its step time may lie from the prediction follows from theirs.
struct RunClass {
  bool experts = false;     // a mixture of experts
  std::string software;     // a SoftwareGroup's name; "" for a framework in none of them
  bool own_curves = false;  // its GEMM curve is fitted on this GPU, not scaled from a relative's
  bool operator==(const RunClass&) const = default;
};
RunClass class_of(const Setting& setting,
                  const core::ParallelPlan& plan,
                  const Curves& curves,
                  const std::vector<SoftwareGroup>& software);

// A class, or a wider one that leaves some of it open.
struct RunPattern {
  std::optional<bool> experts;
  std::optional<std::string> software;
  std::optional<bool> own_curves;

  bool holds(const RunClass& run) const;
  std::string text() const;  // "dense, Megatron-Core, GPU with curves of its own"; "all runs"
  bool operator==(const RunPattern&) const = default;
};
// Patterns that hold a class, the widest first: all runs, then with its experts, its software, its GPU's curves.
std::vector<RunPattern> patterns_of(const RunClass& run);

}  // namespace simulator

#pragma once

#include <string>

namespace simulator {

// Plan settings given as flags of their own, in the spelling of the frameworks: the same as in a plan's text.
struct PlanFlags {
  std::string tp, pp, vpp, cp, ep, etp, dp, zero, mbs, recompute, schedule;
  bool sp = false;

  // "tp=8 pp=4 sp"; "" where no flag was given.
  std::string text() const;
};

}  // namespace simulator

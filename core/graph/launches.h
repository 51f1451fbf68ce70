#pragma once

#include <cstdint>
#include <vector>

#include "core/framework.h"
#include "core/graph/body.h"

namespace core {

// Launches that an operation stands for, by its kind and, among kernels bound by memory, its name.
std::int64_t launches_of(const Launches& launches, const BodyOp& op);

// Launches of operations that run one after another: the host time of a part of a body is this many times
// Framework::host(graphs). Counts recompute's bookkeeping once where any operation is recomputed.
class LaunchCount {
 public:
  explicit LaunchCount(const Launches& launches) : launches_(launches) {}
  void add(const BodyOp& op) {
    sum_ += launches_of(launches_, op);
    recomputes_ = recomputes_ || op.recompute;
  }
  std::int64_t total() const { return sum_ + (recomputes_ ? launches_.recompute : 0); }

 private:
  const Launches& launches_;
  std::int64_t sum_ = 0;
  bool recomputes_ = false;
};

std::int64_t launches_of(const Launches& launches, const std::vector<const BodyOp*>& ops);

}  // namespace core

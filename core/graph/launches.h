#pragma once

#include <cstdint>
#include <vector>

#include "core/framework.h"
#include "core/graph/body.h"

namespace core {

// Launches that an operation stands for, by its kind and, among kernels bound by memory, its name; 0 inside a graph of a part
// of its layer. Where graphs cover whole layers all count, at Framework::host(graphs) each.
std::int64_t launches_of(const Launches& launches, const BodyOp& op, CudaGraphs graphs);

// Launches of operations that run one after another: the host time of a part of a body is this many times
// Framework::host(graphs). Counts recompute's bookkeeping once where any operation is recomputed.
class LaunchCount {
 public:
  LaunchCount(const Launches& launches, CudaGraphs graphs) : launches_(launches), graphs_(graphs) {}
  void add(const BodyOp& op) {
    sum_ += launches_of(launches_, op, graphs_);
    recomputes_ = recomputes_ || op.recompute;
  }
  std::int64_t total() const { return sum_ + (recomputes_ ? launches_.recompute : 0); }

 private:
  const Launches& launches_;
  CudaGraphs graphs_;
  std::int64_t sum_ = 0;
  bool recomputes_ = false;
};

std::int64_t launches_of(const Launches& launches, const std::vector<const BodyOp*>& ops, CudaGraphs graphs);

}  // namespace core

#pragma once

#include <cstddef>
#include <vector>

namespace core {

// The order in which the operations of an overlapped pair are queued on a rank: those of the backward until one that hands
// over (a blocking all-to-all of experts), then those of the forward until one of its own, and so on, so that the all-to-all
// of one runs beside the kernels of the other (DualPipe, arXiv 2412.19437, figure 4).
struct Interleaved {
  bool is_forward = false;
  std::size_t index = 0;  // in its own list
};

template <class BackwardHandsOver, class ForwardHandsOver>
std::vector<Interleaved> interleave(std::size_t backward,
                                    const BackwardHandsOver& backward_hands_over,
                                    std::size_t forward,
                                    const ForwardHandsOver& forward_hands_over) {
  std::vector<Interleaved> order;
  order.reserve(backward + forward);
  std::size_t b = 0, f = 0;
  bool is_forward = false;
  while (b < backward || f < forward) {
    if (is_forward) {
      while (f < forward) {
        order.push_back({true, f});
        if (forward_hands_over(f++)) break;
      }
    } else {
      while (b < backward) {
        order.push_back({false, b});
        if (backward_hands_over(b++)) break;
      }
    }
    is_forward = !is_forward;
  }
  return order;
}

}  // namespace core

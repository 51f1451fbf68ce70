#pragma once

#include <cstdint>

#include "core/plan/schedules/program.h"

namespace core::schedules {

// The program of a rank that serves two streams of n micro-batches, of which it is the r-th of P ranks from the outside in:
// `near`, the stream that enters on its side of the pipeline, and `far`, the one that comes from the other side. DualPipe has
// two such halves of P = p / 2 ranks, which are each other's far side; folding it in the middle gives DualPipeV, whose one
// half of P = p ranks has both ends of its stages. In the order that DeepSeek published (github.com/deepseek-ai/DualPipe):
//   1  2 (P - r - 1) forwards near              5  P - r - 1 times B far, (F far + B near)
//   2  r + 1 times F near, F far                6  r + 1 times B far, B near; the second half of them I only
//   3  P - r - 1 times I far, W, F far          7  P - r - 1 times W, I near
//   4  n - 2 P + r + 1 times (F near + B far),  8  r + 1 times W
//      (F far + B near); the innermost rank does not overlap its first pair, whose B is of the F just before it
// Requires n >= 2 P.
inline void write_both_directions(
    std::vector<Action>& program, StageCells near, StageCells far, std::int64_t P, std::int64_t r, std::int64_t n) {
  const auto times = [](std::int64_t count, auto&& step) {
    for (std::int64_t i = 0; i < count; ++i) step(i);
  };
  // The weight gradients put off in step 6 and 7, oldest first: positions of their I in the program.
  std::size_t oldest = 0;
  const auto next_weight = [&] {
    while (program[oldest].kind != Action::Kind::input_gradient) ++oldest;
    const auto& a = program[oldest++];
    program.push_back({a.stage, Action::Kind::weight_gradient, a.micro_batch});
  };

  times(2 * (P - r - 1), [&](auto) { near.forward(); });
  times(r + 1, [&](auto) { near.forward(), far.forward(); });
  times(P - r - 1, [&](auto) { far.input_gradient(), next_weight(), far.forward(); });
  times(n - 2 * P + r + 1, [&](auto i) {
    if (i == 0 && r == P - 1) {
      near.forward(), far.backward();
    } else {
      near.forward_with_backward_of(far);
    }
    far.forward_with_backward_of(near);
  });
  times(P - r - 1, [&](auto) { far.backward(), far.forward_with_backward_of(near); });
  // Half of the 2 (r + 1) backwards, rounded up, are whole.
  std::int64_t whole = r + 1;
  const auto back = [&](StageCells& stage) {
    if (whole > 0) {
      --whole, stage.backward();
    } else {
      stage.input_gradient();
    }
  };
  times(r + 1, [&](auto) { back(far), back(near); });
  times(P - r - 1, [&](auto) { next_weight(), near.input_gradient(); });
  times(r + 1, [&](auto) { next_weight(); });
}

}  // namespace core::schedules

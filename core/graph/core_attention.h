#pragma once

#include <cstdint>
#include <string>

#include "core/graph/body_writer.h"

namespace core {

// Scores and weighted values of the heads of one tensor-parallel rank, and how its keys reach it under context parallelism.
struct CoreAttention {
  std::int64_t heads = 1, kv_heads = 1;  // of this rank
  std::int64_t qk_dim = 1, v_dim = 1;    // widths of a head's keys and values
  std::int64_t window = 0;               // sliding window in tokens, 0 = none
  std::int64_t chunk = 0;                // attention within chunks of this many tokens (Llama 4), 0 = none
  std::int64_t top_k = 0;                // keys of each query chosen by an indexer (DeepSeek-V3.2), 0 = all
  bool sums_values = true;               // false: scores alone are wanted (an indexer)
  std::string name = "core_attention";   // of the kernel

  double q_width() const { return static_cast<double>(heads * qk_dim); }
  double kv_width() const { return static_cast<double>(kv_heads * (qk_dim + v_dim)); }
  double out_width() const { return static_cast<double>(heads * v_dim); }
};

// Writes core attention in one direction, with what context parallelism exchanges around it:
//   ring        in cp steps (Ring Attention, arXiv 2310.01889): a kernel over the rank's own keys, and one over those of each
//               other rank, which the neighbour sends during the step before; backward their gradients are sent too: twice
//               the bytes. A step takes the longer of its kernel and the exchange. Each step after the first adds a partial
//               output to the sum by its log-sum-exp, backward partial gradients. Where a window, a chunk or chosen keys
//               limit what is met, and unfused, it is one kernel beside one exchange: such rings are not published
//   all_gather  keys and values are gathered before the kernel, their gradients scattered after it (Llama 3,
//               arXiv 2407.21783, section 3.3.2); the gathered ones are not kept
//   ulysses     all-to-all from sequence to heads before, and back after (DeepSpeed-Ulysses, arXiv 2309.14509); key-value heads
//               fewer than ranks are copied to each that needs one
// Balanced, each rank has an early and a late part of the sequence, so that causal work is equal; unbalanced, the last rank
// is written. In a balanced ring a step is half of a square: early queries and keys alone, or late ones; the last rank is
// written, whose steps have all of its queries and the early keys of the others (no other rank has shorter rows).
void write_core_attention(BodyWriter& writer, const CoreAttention& a, const BodyContext& context, Direction direction);

// What it keeps for backward besides q, k, v and its output: unfused the scores, fused one fp32 log-sum-exp a row.
void save_core_attention(BodyWriter& writer, const CoreAttention& a, const BodyContext& context);

// Bytes of scores that an unfused kernel has alive at once besides what it saves; 0 fused.
double unfused_scores(const CoreAttention& a, const BodyContext& context);

// Bytes that context parallelism has alive besides. A ring in steps: keys and values in use and on their way, backward with
// their gradients, and the fp32 sum of outputs (of the queries' gradients) with the partial one that is added. All-gather: the
// gathered keys and values, backward with their gradients.
double exchange_buffers(const CoreAttention& a, const BodyContext& context, Direction direction);

}  // namespace core

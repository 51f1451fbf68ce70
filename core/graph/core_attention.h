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
  std::string name = "core_attention";   // of the kernel

  double q_width() const { return static_cast<double>(heads * qk_dim); }
  double kv_width() const { return static_cast<double>(kv_heads * (qk_dim + v_dim)); }
  double out_width() const { return static_cast<double>(heads * v_dim); }
};

// Writes core attention in one direction, with what context parallelism exchanges around it:
//   ring        keys and values pass along beside the kernel (Ring Attention, arXiv 2310.01889); backward passes their
//               gradients too: twice the bytes
//   all_gather  keys and values are gathered before the kernel, their gradients scattered after it (Llama 3,
//               arXiv 2407.21783, section 3.3.2); the gathered ones are not kept
//   ulysses     all-to-all from sequence to heads before, and back after (DeepSpeed-Ulysses, arXiv 2309.14509); key-value heads
//               fewer than ranks are copied to each that needs one
// Balanced, each rank has an early and a late part of the sequence, so that causal work is equal; unbalanced, the last rank
// is written.
void write_core_attention(BodyWriter& writer, const CoreAttention& a, const BodyContext& context, Direction direction);

// What it keeps for backward besides q, k, v and its output: unfused the scores, fused one fp32 log-sum-exp a row.
void save_core_attention(BodyWriter& writer, const CoreAttention& a, const BodyContext& context);

// Bytes of scores that an unfused kernel has alive at once besides what it saves; 0 fused.
double unfused_scores(const CoreAttention& a, const BodyContext& context);

}  // namespace core

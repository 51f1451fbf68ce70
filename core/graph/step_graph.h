#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/units.h"

namespace core {

using OpId = std::uint32_t;

// In-order queues of a rank. Collectives and sends run beside compute on their own.
enum class Stream : std::uint8_t {
  compute, tensor, data, send_forward, send_backward, context, expert, to_host, to_device
};
inline constexpr std::int32_t streams_per_rank = 9;
std::string_view name_of(Stream stream);

enum class Phase : std::uint8_t {
  forward,
  backward,
  recompute,
  send_forward,
  send_backward,
  gradient_reduce,
  parameter_gather,
  tied_gradient,
  gradient_norm,
  optimizer,
  offload,
  weight_gradient,
};
std::string_view name_of(Phase phase);

// Names an operation of the step independently of how many ranks were lowered, so that a prediction and a
// measurement meet by key. `layer` is the body's place in its virtual stage, `slot` the operation's in its body.
struct OpKey {
  std::uint16_t stage = 0;
  std::uint16_t layer = 0;
  Phase phase = Phase::forward;
  std::uint16_t slot = 0;
  std::uint32_t micro_batch = 0;
  bool operator==(const OpKey&) const = default;
};
std::string to_text(const OpKey& key);

// Ranks {first + i * stride} that communicate, in the numbering of the plan.
struct CommGroup {
  std::string name;  // "tp", "cp", "ep", "etp", "dp", "edp", "pp0>1", "tied", "world"; "dp.8" a part of a group
  std::int64_t first = 0, stride = 1, size = 1;
  bool operator==(const CommGroup&) const = default;
};

// The queue on which collectives of a body run.
Stream stream_of(const CommGroup& group);

// The serial operations that one `cell` operation stands for (OpSpec::m is its index; of an overlapped pair, m that
// of the forward and n - 1 that of the backward; n = 0 else).
struct ChainOp {
  std::uint32_t spec = 0;
  bool recompute = false, overlaps_next = false;
  bool operator==(const ChainOp&) const = default;
};

// A tensor's life, for memory over time: from the start of `first` to the end of `last`.
enum class MemoryTerm : std::uint8_t {
  weights, gradients, optimizer, activations, logits, buffers, communicators, context, fragmentation
};
inline constexpr std::size_t memory_terms = 9;
std::string_view name_of(MemoryTerm term);

// Activations may have bytes less than 0: room that others free before their own last operation ends.
struct TensorLife {
  OpId first = 0, last = 0;
  std::int32_t rank = 0;
  MemoryTerm term = MemoryTerm::activations;
  std::int64_t bytes = 0;
  bool operator==(const TensorLife&) const = default;
};

// Level 3 of the representation: a step as flat arrays, built once and then only read. Operations that depend on others
// come after them (ids are a topological order).
struct StepGraph {
  // Lowered ranks, and how many ranks of the plan each stands for.
  std::int32_t ranks = 0;
  std::vector<std::int64_t> multiplicity;

  std::vector<OpSpec> specs;
  std::vector<CommGroup> groups;
  std::vector<std::vector<ChainOp>> chains;

  // Operations, struct of arrays.
  std::vector<std::uint32_t> spec;
  std::vector<OpKey> key;
  std::vector<std::uint8_t> recompute;

  // Dependencies of operation i: dependencies[dependency_begin[i] .. dependency_begin[i + 1]).
  std::vector<std::uint32_t> dependency_begin{0};
  std::vector<OpId> dependencies;
  // Queues that operation i occupies, as rank * streams_per_rank + stream: a kernel has one, an unfolded
  // collective one on each member. The order of ids is the order of each queue.
  std::vector<std::uint32_t> queue_begin{0};
  std::vector<std::uint32_t> queues;

  std::vector<TensorLife> tensors;
  std::vector<std::vector<std::int64_t>> resident;  // by rank, by MemoryTerm: bytes that stay all the step

  std::size_t size() const { return spec.size(); }
  Stream stream_of(OpId op) const {
    return static_cast<Stream>(queues[queue_begin[op]] % static_cast<std::uint32_t>(streams_per_rank));
  }
  std::int32_t rank_of(OpId op) const {
    return static_cast<std::int32_t>(queues[queue_begin[op]] / static_cast<std::uint32_t>(streams_per_rank));
  }
  bool operator==(const StepGraph&) const = default;

  // Indices of the chains that a cell stands for: one, or the forward's and the backward's of a pair.
  static std::vector<std::size_t> chains_of(const OpSpec& cell);
  Flops flops(std::int32_t rank) const;                  // of a rank's operations, cells unrolled
  Bytes bytes(std::int32_t rank, OpKind collective) const;  // of a rank's collectives of a kind, cells unrolled
};

std::string to_text(const StepGraph& graph);
// Reads the text form. Throws InputError with the line.
StepGraph parse_step_graph(std::string_view text);

}  // namespace core

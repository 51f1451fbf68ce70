#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/graph/memory.h"
#include "core/graph/step_graph.h"
#include "core/graph/step_work.h"

namespace core {

enum class Fold : std::uint8_t { yes, no };

// Writes operations into a step graph: which ranks there are, what an operation waits for, which tensors it keeps alive.
// Lowering derives from it and decides what is written when.
class GraphWriter {
 protected:
  GraphWriter(const StepWork& work, Fold fold);

  // Ranks: pipeline rank p, data-parallel rank d, tensor-parallel rank t. Folded, d and t are 0.
  std::int32_t rank(std::int64_t p, std::int64_t d, std::int64_t t) const {
    return static_cast<std::int32_t>((p * dp_ + d) * tp_ + t);
  }
  template <class Function>
  void each_rank_of(std::int64_t p, Function function) {
    for (std::int64_t d = 0; d < dp_; ++d) {
      for (std::int64_t t = 0; t < tp_; ++t) function(rank(p, d, t));
    }
  }
  using Members = std::vector<std::int32_t>;
  std::vector<Members> tensor_groups(std::int64_t p) const;
  std::vector<Members> data_groups(std::int64_t p) const;

  // Specs and groups. `cell_of`: the cell that stands for bodies [begin, end) of a stage.
  std::uint32_t add_spec(OpSpec spec);
  std::uint32_t find_or_add(const OpSpec& spec);
  std::int16_t add_group(CommGroup group);
  OpSpec collective(OpKind kind, std::string name, double bytes, std::int16_t group) const;
  const std::vector<ChainOp>& chain_of(std::uint16_t body, Direction direction);
  std::uint32_t cell_of(std::size_t stage, BodyRange range, Direction direction);

  // What the next operation of a rank's compute queue has to wait for besides the queue itself.
  struct Lane {
    std::optional<OpId> last;    // last operation of the chain, any queue
    std::vector<OpId> joins;     // collectives that the next operation waits for
    std::optional<OpId> beside;  // an overlapped collective: joined by the operation after the next
  };
  Lane& lane(std::int32_t rank) { return lanes_[static_cast<std::size_t>(rank)]; }

  // One operation: begin_op, then depend and occupy as often as needed, then end_op.
  OpId begin_op(std::uint32_t spec, OpKey key, bool recompute = false);
  void depend(OpId on) { graph_.dependencies.push_back(on); }
  void depend_on_lane(const Lane& l);
  void occupy(std::int32_t rank, Stream stream);
  void end_op();

  // A kernel or cell on the compute queue. It waits for what its lane has to join.
  OpId compute(std::int32_t r, std::uint32_t spec, OpKey key, bool recompute = false);

  // A micro-batch's forward or backward work of bodies [begin, end) of a stage, on all ranks of pipeline rank p.
  struct Work {
    std::int64_t p = 0;
    std::size_t stage = 0;
    BodyRange range;
    Direction direction = Direction::forward;
    std::uint32_t micro_batch = 0;
    bool shares_tensors = false;  // both directions run as one operation each: the bodies' tensors are one
  };
  void run_cell(const Work& work);  // as one cell
  void run_ops(const Work& work);   // operation by operation

  const StepWork& work_;
  std::int64_t tp_, dp_;
  Fold fold_;
  StepGraph graph_;
  std::vector<Lane> lanes_;
  std::int16_t tensor_group_ = -1, data_group_ = -1, world_group_ = -1;

 private:
  OpId chain_collective(const Members& members, const ChainOp& op, OpKey key);
  void run_op(std::int64_t p, const ChainOp& op, OpKey key);
  ChainOp host_wait(const std::vector<ChainOp>& chain, Direction direction);
  std::uint32_t make_cell(std::size_t stage, BodyRange range, Direction direction);
  std::pair<OpId, OpId> own_span(std::int32_t r, OpId from) const;
  void live(std::int32_t r, const Work& work, OpId first, OpId last);
  void saved(std::int32_t r, const Work& work, OpId first, OpId last);

  std::vector<std::vector<ChainOp>> body_chains_;  // by body and direction
  std::vector<Direction> cell_direction_;          // by chain
  std::vector<std::uint32_t> cell_spec_;           // by chain; 0 = no cell
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, Direction>, std::optional<std::uint32_t>> cells_;
  std::vector<BodyMemory> memory_;                       // by body
  std::unordered_map<std::uint64_t, std::size_t> open_;  // tensors that wait for their backward
};

}  // namespace core

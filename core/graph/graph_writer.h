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
#include "core/plan/schedule.h"

namespace core {

enum class Fold : std::uint8_t { yes, no };

// What an action of a schedule runs of a body: all of a direction, or a part of the backward.
using Part = Action::Kind;
constexpr Direction direction_of(Part part) { return part == Part::forward ? Direction::forward : Direction::backward; }

// Operations of a part of a body, in order.
std::vector<const BodyOp*> ops_of(const Body& body, Part part);

// Writes operations into a step graph: which ranks there are, what an operation waits for, which tensors it keeps alive.
// Lowering derives from it and decides what is written when.
class GraphWriter {
 protected:
  GraphWriter(const StepWork& work, Fold fold, bool splits_backward);

  // Ranks: pipeline rank p, and i among the ranks of its stage. Folded, i is 0.
  std::int32_t rank(std::int64_t p, std::int64_t i) const { return static_cast<std::int32_t>(p * width_ + i); }
  template <class Function>
  void each_rank_of(std::int64_t p, Function function) {
    for (std::int64_t i = 0; i < width_; ++i) function(rank(p, i));
  }
  using Members = std::vector<std::int32_t>;
  std::vector<Members> groups_of(std::int64_t p, GroupShape shape) const;

  // Specs and groups. `cell_of`: the cell that stands for bodies [begin, end) of a stage.
  std::uint32_t add_spec(OpSpec spec);
  std::uint32_t find_or_add(const OpSpec& spec);
  std::int16_t add_group(CommGroup group);
  // The group of a shape, named for its role; registered when first asked for.
  std::int16_t group_of(GroupShape shape, const std::string& name);
  OpSpec collective(OpKind kind, std::string name, double bytes, std::int16_t group) const;
  std::uint32_t spec_of(const StateOp& op);
  const std::vector<ChainOp>& chain_of(std::uint16_t body, Part part);
  std::uint32_t cell_of(std::size_t stage, BodyRange range, Part part);
  // The cell of an overlapped pair: all bodies of two model stages.
  std::uint32_t pair_of(std::size_t forward_stage, std::size_t backward_stage, Part backward);

  // What the next operation of a rank's compute queue has to wait for besides the queue itself.
  struct Lane {
    std::optional<OpId> last;    // last operation of the chain, any queue
    std::vector<OpId> joins;     // collectives that the next operation waits for
    std::optional<OpId> beside;  // an overlapped collective: joined by the operation after the next
  };
  Lane& lane(std::int32_t rank) { return (second_ ? second_lanes_ : lanes_)[static_cast<std::size_t>(rank)]; }

  // One operation: begin_op, then depend and occupy as often as needed, then end_op.
  OpId begin_op(std::uint32_t spec, OpKey key, bool recompute = false);
  void depend(OpId on) { graph_.dependencies.push_back(on); }
  void depend_on_lane(const Lane& l);
  void occupy(std::int32_t rank, Stream stream);
  void end_op();

  // A kernel or cell on the compute queue. It waits for what its lane has to join.
  OpId compute(std::int32_t r, std::uint32_t spec, OpKey key, bool recompute = false);

  // A micro-batch's work of bodies [begin, end) of a stage, on all ranks of pipeline rank p.
  struct Work {
    std::int64_t p = 0;
    std::size_t stage = 0, model_stage = 0;  // of the table, of the model
    BodyRange range;
    Part part = Part::forward;
    std::uint32_t micro_batch = 0;
    bool shares_tensors = false;  // all parts run as one operation each: the bodies' tensors are one
  };
  void run_cell(const Work& work);  // as one cell
  void run_ops(const Work& work);   // operation by operation
  // A forward and a backward that overlap; what follows waits for both.
  void run_pair_cell(const Work& forward, const Work& backward);
  void run_pair_ops(const Work& forward, const Work& backward);

  const StepWork& work_;
  const StateTraffic traffic_;
  std::int64_t width_;  // lowered ranks of a stage
  Fold fold_;
  StepGraph graph_;
  std::vector<Lane> lanes_, second_lanes_;  // second: of the forward of a pair
  bool second_ = false;
  std::int16_t world_group_ = -1;

 private:
  struct PairOp {
    ChainOp op;
    OpKey key;
  };
  std::vector<PairOp> pair_ops(const Work& work);
  OpId chain_collective(const Members& members, const ChainOp& op, OpKey key);
  void run_op(std::int64_t p, const ChainOp& op, OpKey key);
  void join_beside(std::int64_t p);
  bool hands_over(const ChainOp& op) const;
  std::int64_t add_beside(const std::vector<ChainOp>& chain, Part part);
  ChainOp copy_wait(const std::vector<ChainOp>& chain, Part part, Bytes bytes);
  ChainOp host_wait(const std::vector<ChainOp>& chain, Part part, std::int64_t launches);
  std::vector<ChainOp> chain_of_range(std::size_t stage, BodyRange range, Part part);
  std::uint32_t make_cell(std::vector<ChainOp> chain, Part part);
  std::pair<OpId, OpId> own_span(std::int32_t r, OpId from) const;
  void live(std::int32_t r, const Work& work, OpId first, OpId last);
  void live_pair(std::int32_t r, const Work& forward, const Work& backward, OpId first, OpId last);
  void saved_of_bodies(std::int32_t r, const Work& work, OpId first, OpId last);
  void saved(std::int32_t r, const Work& work, OpId first, OpId last);

  bool splits_backward_;
  std::vector<std::vector<ChainOp>> body_chains_;  // by body and part
  std::vector<std::optional<std::uint32_t>> cell_spec_;  // by chain
  std::vector<Part> cell_part_;                    // by chain
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, Part>, std::uint32_t> cells_;
  std::map<std::tuple<std::size_t, std::size_t, Part>, std::uint32_t> pairs_;
  std::map<std::pair<GroupShape, std::string>, std::int16_t> group_index_;
  std::vector<GroupShape> shapes_;                       // by group
  std::vector<BodyMemory> memory_;                       // by body
  std::unordered_map<std::uint64_t, std::size_t> open_;  // tensors that wait for their backward, or for their W
  std::unordered_map<std::uint64_t, std::size_t> weight_inputs_;  // tensors that wait for their W
};

}  // namespace core

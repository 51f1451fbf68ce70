#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace core {

// One cell of a pipeline schedule: what a rank does in a slot.
struct Action {
  enum class Kind : std::uint8_t { forward, backward, input_gradient, weight_gradient };
  std::uint16_t stage = 0;       // virtual stage of the table, 0 .. stages() - 1
  Kind kind = Kind::forward;
  std::uint32_t micro_batch = 0;
  bool with_next = false;        // runs overlapped with the next action of the rank: one forward, one backward or I
  bool operator==(const Action&) const = default;
};

// Where the virtual stages live, and which way micro-batches go through them.
//   loop:      stage s on rank s % pp; every micro-batch visits 0, 1, 2, ...
//   v:         two stages a rank, s on rank s for s < pp, else on rank 2 pp - 1 - s: the last rank has the two in the middle,
//              the first rank has the first and the last
//   both_ways: two copies of pp model stages; stage s < pp is model stage s on rank s; stage pp + s is model stage s on rank
//              pp - 1 - s. The first half of the micro-batches visits 0 .. pp - 1, the second half pp .. 2 pp - 1 (DualPipe)
enum class Placement : std::uint8_t { loop, v, both_ways };

// Rank x slot: the actions of each pipeline rank in the order in which it runs them.
struct ScheduleTable {
  std::int64_t pp = 1, vpp = 1, micro_batches = 1;  // vpp: stages of the table on a rank
  std::vector<std::vector<Action>> ranks;
  Placement placement = Placement::loop;

  std::int64_t stages() const { return pp * vpp; }
  std::int64_t rank_of(std::int64_t stage) const;
  // The stage of the model that a stage of the table runs: itself but for both_ways.
  std::int64_t model_stage(std::int64_t stage) const { return placement == Placement::both_ways ? stage % pp : stage; }
  // The stage that a micro-batch visits first, last, and next after `stage`.
  bool is_first(std::int64_t stage) const;
  bool is_last(std::int64_t stage) const;
  // Whether a micro-batch visits a stage: with both_ways, that of its half.
  bool visits(std::int64_t stage, std::int64_t micro_batch) const;
  bool operator==(const ScheduleTable&) const = default;
};

// Text form: a line a rank, "0F0 0F1 0B0"; F forward, B whole backward, I input gradient, W weight gradient; "(0F4+1B0)" an
// overlapped pair. A first line "placement v" or "placement both_ways" where it is not loop. Lines that begin with # are
// remarks; blanks may be spaces or tabs.
std::string to_text(const ScheduleTable& table);
// Reads the text form. Throws InputError with the line and what was expected.
ScheduleTable parse_schedule(std::string_view text);
// Why a table cannot run (a cell missing or twice, a stage on the wrong rank, a backward before its forward, W before I, a
// pair of two forwards, a deadlock), or nothing.
std::optional<std::string> why_not_executable(const ScheduleTable& table);
// Most micro-batches in flight (forward done or running, backward or W not finished) of each stage of the table.
std::vector<std::int64_t> most_in_flight(const ScheduleTable& table);

// Whether a whole backward ends a run: the next one of its rank is of another stage, or there is none. By stage *
// micro_batches + micro-batch.
std::vector<bool> ends_of_runs(const ScheduleTable& table);

// A pipeline schedule: one file in core/plan/schedules that writes such a table.
struct Schedule {
  std::string_view name;
  // Why the schedule cannot run with these sizes, or nothing. vpp as in the plan.
  std::optional<std::string> (*why_not)(std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches);
  ScheduleTable (*table)(std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches);
  // Micro-batches in one round of the steady state: the table of m + round micro-batches is that of m with one more
  // round in its middle. 0 where there is no steady state (GPipe).
  std::int64_t (*round_micro_batches)(std::int64_t pp);
  Placement placement = Placement::loop;
  bool splits_backward = false;  // has I and W cells
  bool pairs = false;            // has overlapped pairs
  bool pairs_input_gradients = false;  // of a forward and an I, not of a whole backward
  // Virtual stages a rank in the plan: nothing = any that why_not allows (interleaved); 1 or 2 else.
  std::optional<std::int64_t> stages_a_rank = 1;
};

namespace schedules {
std::span<const Schedule* const> all();
}
const Schedule* find_schedule(std::string_view name);  // null when unknown

// The schedule's round where it holds for this number of micro-batches, which is from 2 pp on and where it divides them, else 0:
// the table of m + round is then that of m with one more round in its middle (with both_ways, counting micro-batches
// within their half).
std::int64_t steady_round(const Schedule& schedule, std::int64_t pp, std::int64_t micro_batches);

// Model stages (StepWork::stages) of a pipeline rank, in the order in which a micro-batch visits them; with both_ways each
// rank has a copy of two.
std::vector<std::int64_t> model_stages_of_rank(Placement placement, std::int64_t pp, std::int64_t stages, std::int64_t rank);

}  // namespace core

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
  std::uint16_t stage = 0;       // virtual stage, 0 .. pp * vpp - 1
  Kind kind = Kind::forward;
  std::uint32_t micro_batch = 0;
  bool operator==(const Action&) const = default;
};

// Rank x slot: the actions of each pipeline rank in the order in which it runs them. Virtual stage s lives on
// rank s % pp (looping placement).
struct ScheduleTable {
  std::int64_t pp = 1, vpp = 1, micro_batches = 1;
  std::vector<std::vector<Action>> ranks;
  std::int64_t stages() const { return pp * vpp; }
  bool operator==(const ScheduleTable&) const = default;
};

// Text form: a line a rank, "0F0 0F1 0B0"; F forward, B whole backward, I input gradient, W weight gradient.
std::string to_text(const ScheduleTable& table);
// Reads the text form. Throws InputError with the line and what was expected.
ScheduleTable parse_schedule(std::string_view text);
// Why a table cannot run (a cell missing or twice, a stage on the wrong rank, a backward before its forward, a
// deadlock), or nothing.
std::optional<std::string> why_not_executable(const ScheduleTable& table);
// Most micro-batches in flight (forward done or running, backward not finished) of each virtual stage.
std::vector<std::int64_t> most_in_flight(const ScheduleTable& table);

// A pipeline schedule: one file in core/plan/schedules that writes such a table.
struct Schedule {
  std::string_view name;
  // Why the schedule cannot run with these sizes, or nothing.
  std::optional<std::string> (*why_not)(std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches);
  ScheduleTable (*table)(std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches);
  // Micro-batches in one round of the steady state: the table of m + round micro-batches is that of m with one more
  // round in its middle. 0 where there is no steady state (GPipe).
  std::int64_t (*round_micro_batches)(std::int64_t pp);
};

namespace schedules {
std::span<const Schedule* const> all();
}
const Schedule* find_schedule(std::string_view name);  // null when unknown

}  // namespace core

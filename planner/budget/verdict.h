#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "planner/budget/choose.h"

namespace planner {

enum class Pays : std::uint8_t { yes, undecided, no };
std::string_view name_of(Pays pays);  // "pays", "undecided", "does not pay"

// Whether a recipe's speed is worth what it costs in loss. Of a budget in days or dollars by the least losses that the budget
// buys, with the recipe and with 16 bits, which count all costs (serving, repeated tokens, a fixed size); of one in FLOPs,
// which speed does not change, by the rule that a recipe pays where it is faster than the compute which brings its loss back.
// Where the two ends of its range say otherwise it is undecided: a coin toss.
struct Verdict {
  std::size_t pool = 0, base_pool = 0, size = 0;
  double speed = 0.0;                        // step time of the base over the recipe's
  Payback needed, needed_low, needed_high;   // with the recipe's factors at their value, their best, their worst
  double asked_low = 0.0, asked_high = 0.0;  // of the speed; infinite: not recoverable
  double base_loss = 0.0, loss = 0.0;        // the least, with 16 bits and with the recipe
  double loss_low = 0.0, loss_high = 0.0;    // the latter with the recipe's factors at their best, at their worst
  Pays pays = Pays::undecided;
};

// What the rule asks of the speed: M_N where sizes are free, M_D where the size is fixed.
enum class SizeIs : std::uint8_t { free, fixed };

// One for each pool whose recipe costs loss, where the same GPUs have a pool with one that does not, and a plan fits in both.
std::vector<Verdict> verdicts_of(const BudgetQuestion& question, const Chosen& chosen, const StepTimes& times, SizeIs size_is);

// Of something that should be large, what is asked of it at the best and at the worst end.
Pays pays(double speed, double asked_low, double asked_high);

}  // namespace planner

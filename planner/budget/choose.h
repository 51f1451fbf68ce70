#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "planner/budget/means.h"
#include "planner/budget/precision.h"
#include "simulator/step.h"

namespace planner {

// A model that a budget may be spent on.
struct Size {
  std::string name;
  double parameters = 0.0, active = 0.0;  // all of them, and those that a token uses
  double N = 0.0;                         // as the law counts them
};

// Sizes that are compared with each other: the same GPUs and recipe.
struct Pool {
  Means means;
  RecipeLoss recipe;
};

// The best plan of a size in a pool.
struct Throughput {
  core::ParallelPlan plan;
  double step_s = 0.0, low_s = 0.0, high_s = 0.0;
  std::string interval_because;
  double mfu = 0.0, tokens_per_s_per_gpu = 0.0, peak_memory_GiB = 0.0;
  simulator::Fits fits = simulator::Fits::yes;
};

// A size in a pool with its best plan, and what that buys.
struct SizeChoice {
  std::size_t pool = 0, size = 0;
  Throughput throughput;
  Training training;
  double loss = 0.0, loss_low = 0.0, loss_high = 0.0;
};

// A size that is not among the choices, and why.
struct Bounded {
  std::size_t pool = 0, size = 0;
  std::optional<double> loss_at_least;  // nothing: no plan fits, or nothing is left to train with
  std::string why;
};

// What a question asks for: sizes in pools under a law.
struct BudgetQuestion {
  LossModel law;
  std::optional<double> unique_tokens;
  std::vector<Size> sizes;
  std::vector<Pool> pools;
};

// Where step times come from: plans in earnest, or a test's formula. All are asked for (pool, size).
struct StepTimes {
  // The best plan, or nothing where none that fits is as fast as `no_slower_than_s` (where given). May be called from several
  // threads at once.
  std::function<std::optional<Throughput>(std::size_t, std::size_t, std::optional<double> no_slower_than_s)> best;
  std::function<double(std::size_t, std::size_t)> least;  // a lower bound that costs nothing
  std::function<double(std::size_t, std::size_t)>
      expected;  // a guess, for the order in which sizes are tried: no answer rests on it
};

struct ChooseOptions {
  bool prune = true;    // false: plan every size
  double slack = 5e-4;  // sizes whose loss is within that share of the best with the same GPUs are planned too
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

struct Chosen {
  std::vector<SizeChoice> choices;  // by pool, then size
  std::vector<Bounded> bounded;     // the same
};

// Plans the sizes whose loss is the least of their pool, or comes within the slack of the best with the same GPUs. Exact: a
// size is left out only when no step as fast as its loss would need is possible (`least`), or none is found by the search. The
// answer does not depend on threads.
Chosen choose(const BudgetQuestion& question, const StepTimes& times, const ChooseOptions& options = {});

// Loss of a size in a pool after so many tokens.
double loss_of(const BudgetQuestion& question, std::size_t pool, std::size_t size, double tokens, End end = End::value);

// The best of a pool: least loss, then fewest parameters. Nothing where no size is planned.
std::optional<std::size_t> best_of_pool(const Chosen& chosen, std::size_t pool);
// The best of all: least loss, then fewest dollars or days.
std::optional<std::size_t> best_of(const Chosen& chosen);
// Choices that none beats in loss, days and dollars at once; sorted by days, then loss.
std::vector<std::size_t> pareto_of(const Chosen& chosen);

}  // namespace planner

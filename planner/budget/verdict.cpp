#include "planner/budget/verdict.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace planner {

namespace {

std::optional<std::size_t> base_pool_of(const BudgetQuestion& q, std::size_t pool) {
  for (std::size_t i = 0; i < q.pools.size(); ++i) {
    if (q.pools[i].recipe.is_baseline() && q.pools[i].means.gpus == q.pools[pool].means.gpus) return i;
  }
  return std::nullopt;
}

std::optional<double> step_of(const Chosen& chosen, const StepTimes& times, std::size_t pool, std::size_t size) {
  for (const auto& c : chosen.choices) {
    if (c.pool == pool && c.size == size) return c.throughput.step_s;
  }
  const auto planned = times.best(pool, size, std::nullopt);
  if (!planned) return std::nullopt;
  return planned->step_s;
}

double asked(const Payback& p, SizeIs size_is) {
  if (size_is == SizeIs::free) return p.parameters;
  return p.tokens.value_or(std::numeric_limits<double>::infinity());
}

// The least loss of a pool with its recipe's factors at an end of their range.
std::optional<double> least_loss(const BudgetQuestion& q, const Chosen& chosen, std::size_t pool, End end) {
  std::optional<double> least;
  for (const auto& c : chosen.choices) {
    if (c.pool != pool) continue;
    const double loss = loss_of(q, pool, c.size, c.training.tokens, end);
    if (!least || loss < *least) least = loss;
  }
  return least;
}

Pays judged(const BudgetQuestion& q, const Verdict& v) {
  if (q.pools[v.pool].means.budget.kind == Budget::Kind::flops) return pays(v.speed, v.asked_low, v.asked_high);
  return v.loss_high < v.base_loss ? Pays::yes : v.loss_low > v.base_loss ? Pays::no : Pays::undecided;
}

}  // namespace

std::string_view name_of(Pays pays) {
  switch (pays) {
    case Pays::yes: return "pays";
    case Pays::undecided: return "undecided";
    case Pays::no: return "does not pay";
  }
  CORE_ASSERT(false);
}

Pays pays(double speed, double asked_low, double asked_high) {
  return speed > asked_high ? Pays::yes : speed < asked_low ? Pays::no : Pays::undecided;
}

std::vector<Verdict> verdicts_of(const BudgetQuestion& q, const Chosen& chosen, const StepTimes& times, SizeIs size_is) {
  std::vector<Verdict> out;
  for (std::size_t pool = 0; pool < q.pools.size(); ++pool) {
    const auto base_pool = base_pool_of(q, pool);
    if (q.pools[pool].recipe.is_baseline() || !base_pool) continue;
    const auto best = best_of_pool(chosen, *base_pool);
    if (!best) continue;
    const auto& base = chosen.choices[*best];
    const auto step = step_of(chosen, times, pool, base.size);
    const auto loss = least_loss(q, chosen, pool, End::value);
    if (!step || !loss) continue;
    Verdict v;
    v.pool = pool, v.base_pool = *base_pool, v.size = base.size;
    v.speed = base.throughput.step_s / *step;
    v.base_loss = base.loss, v.loss = *loss;
    v.loss_low = *least_loss(q, chosen, pool, End::high), v.loss_high = *least_loss(q, chosen, pool, End::low);
    const auto needed = [&](End end) {
      return payback(q.law.loss, q.pools[pool].recipe, end, q.sizes[base.size].N, base.training.tokens);
    };
    v.needed = needed(End::value), v.needed_low = needed(End::high), v.needed_high = needed(End::low);
    v.asked_low = asked(v.needed_low, size_is), v.asked_high = asked(v.needed_high, size_is);
    v.pays = judged(q, v);
    out.push_back(v);
  }
  return out;
}

}  // namespace planner

#include "planner/budget/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "planner/parallel.h"

namespace planner {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t sizes_a_round =
    4;  // whatever the number of threads: what a size must beat is fixed when its round begins

class PoolSearch {
 public:
  PoolSearch(const BudgetQuestion& question, const StepTimes& times, const ChooseOptions& options, std::size_t pool)
      : q_(question),
        times_(times),
        options_(options),
        pool_(pool),
        loss_(under(question.law.loss, question.pools[pool].recipe)),
        order_(promising_first()) {}

  // The most promising size alone, so that the others have something to beat.
  void run_first() { run_round({order_.front()}, infinity); }
  // The others; those within the slack of `others_best` are planned too.
  void run_rest(double others_best, const std::function<void()>& after_round) {
    for (std::size_t next = 1; next < order_.size();) {
      const auto end = std::min(order_.size(), next + sizes_a_round);
      run_round({order_.begin() + static_cast<std::ptrdiff_t>(next), order_.begin() + static_cast<std::ptrdiff_t>(end)},
                others_best);
      next = end;
      after_round();
    }
  }
  std::size_t done() const { return choices_.size() + bounded_.size(); }
  double best() const { return best_; }
  void hand_over(Chosen& out) {
    const auto by_size = [](const auto& a, const auto& b) { return a.size < b.size; };
    std::sort(choices_.begin(), choices_.end(), by_size);
    std::sort(bounded_.begin(), bounded_.end(), by_size);
    out.choices.insert(out.choices.end(), choices_.begin(), choices_.end());
    out.bounded.insert(out.bounded.end(), bounded_.begin(), bounded_.end());
  }

 private:
  struct Outcome {
    std::optional<SizeChoice> choice;
    std::optional<Bounded> bounded;
  };

  double loss_with(std::size_t size, double step_s) const {
    const auto training = training_for(q_.pools[pool_].means, q_.sizes[size].active, step_s);
    if (!training) return infinity;
    return loss_(q_.sizes[size].N, training->tokens, distinct(training->tokens, q_.unique_tokens));
  }

  std::vector<std::size_t> promising_first() const {
    std::vector<std::pair<double, std::size_t>> expected;
    for (std::size_t i = 0; i < q_.sizes.size(); ++i) {
      expected.emplace_back(loss_with(i, times_.expected(pool_, i)), i);
    }
    std::sort(expected.begin(), expected.end());
    std::vector<std::size_t> order;
    for (const auto& [loss, i] : expected) order.push_back(i);
    return order;
  }

  void run_round(const std::vector<std::size_t>& sizes, double others_best) {
    const double target = std::max(best_, std::min(best_, others_best) * (1.0 + options_.slack));
    std::vector<Outcome> outcomes(sizes.size());
    parallel_for(sizes.size(), [&](std::size_t i) { outcomes[i] = outcome_of(sizes[i], target); });
    for (auto& o : outcomes) {
      if (o.bounded) bounded_.push_back(std::move(*o.bounded));
      if (!o.choice) continue;
      best_ = std::min(best_, o.choice->loss);
      choices_.push_back(std::move(*o.choice));
    }
  }

  // Of a size whose loss must be `target` at most.
  Outcome outcome_of(std::size_t size, double target) const {
    const auto& means = q_.pools[pool_].means;
    const double least = times_.least(pool_, size);
    const double at_best = loss_with(size, least);
    if (at_best == infinity) return {{}, Bounded{pool_, size, {}, "serving takes the whole budget"}};
    std::optional<double> limit;
    if (options_.prune && target < infinity) {
      const auto tokens = tokens_for_loss(loss_, q_.sizes[size].N, q_.unique_tokens, target);
      limit = tokens ? longest_step(means, q_.sizes[size].active, *tokens) : 0.0;
      const bool by_time = means.budget.kind != Budget::Kind::flops;
      if (*limit < least) {
        return {{}, Bounded{pool_, size, at_best, by_time ? "even at the fastest that GEMMs of its formats run" : "these FLOPs buy it too few tokens"}};
      }
      if (*limit == infinity) limit.reset();
    }
    const auto throughput = times_.best(pool_, size, limit);
    if (!throughput && limit) return {{}, Bounded{pool_, size, target, "no plan that fits is fast enough"}};
    if (!throughput) return {{}, Bounded{pool_, size, {}, "no plan fits"}};
    SizeChoice choice{pool_, size, *throughput, {}, 0.0, 0.0, 0.0};
    choice.training = *training_for(means, q_.sizes[size].active, throughput->step_s);
    choice.loss = choice.loss_low = choice.loss_high = loss_with(size, throughput->step_s);
    return {std::move(choice), {}};
  }

  const BudgetQuestion& q_;
  const StepTimes& times_;
  const ChooseOptions& options_;
  std::size_t pool_;
  LossModel::Function loss_;
  std::vector<std::size_t> order_;
  double best_ = infinity;
  std::vector<SizeChoice> choices_;
  std::vector<Bounded> bounded_;
};

// Pools by what their first size came to, so that the others know early what is good.
std::vector<std::size_t> best_first(const std::vector<PoolSearch>& searches) {
  std::vector<std::size_t> order(searches.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return searches[a].best() < searches[b].best(); });
  return order;
}

double usd_of(const SizeChoice& c) { return c.training.usd.value_or(0.0); }

bool beats(const SizeChoice& a, const SizeChoice& b) {
  const bool no_worse = a.loss <= b.loss && a.training.days <= b.training.days && usd_of(a) <= usd_of(b);
  return no_worse && (a.loss < b.loss || a.training.days < b.training.days || usd_of(a) < usd_of(b));
}

}  // namespace

Chosen choose(const BudgetQuestion& question, const StepTimes& times, const ChooseOptions& options) {
  if (question.sizes.empty()) return {};
  std::vector<PoolSearch> searches;
  for (std::size_t pool = 0; pool < question.pools.size(); ++pool) searches.emplace_back(question, times, options, pool);
  const auto report = [&] {
    std::size_t done = 0;
    for (const auto& search : searches) done += search.done();
    if (options.progress) options.progress(done, question.pools.size() * question.sizes.size());
  };
  for (auto& search : searches) search.run_first();
  for (const auto pool : best_first(searches)) {
    double others_best = infinity;
    for (std::size_t i = 0; i < searches.size(); ++i) {
      if (question.pools[i].means.gpus == question.pools[pool].means.gpus)
        others_best = std::min(others_best, searches[i].best());
    }
    searches[pool].run_rest(others_best, report);
  }
  Chosen out;
  for (auto& search : searches) search.hand_over(out);
  return out;
}

double loss_of(const BudgetQuestion& q, std::size_t pool, std::size_t size, double tokens, End end) {
  return under(q.law.loss, q.pools[pool].recipe, end)(q.sizes[size].N, tokens, distinct(tokens, q.unique_tokens));
}

std::optional<std::size_t> best_of_pool(const Chosen& chosen, std::size_t pool) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < chosen.choices.size(); ++i) {
    const auto& c = chosen.choices[i];
    if (c.pool == pool && (!best || c.loss < chosen.choices[*best].loss)) best = i;
  }
  return best;
}

std::optional<std::size_t> best_of(const Chosen& chosen) {
  std::optional<std::size_t> best;
  const auto key = [&](std::size_t i) {
    const auto& c = chosen.choices[i];
    return std::make_tuple(c.loss, usd_of(c), c.training.days);
  };
  for (std::size_t i = 0; i < chosen.choices.size(); ++i) {
    if (!best || key(i) < key(*best)) best = i;
  }
  return best;
}

std::vector<std::size_t> pareto_of(const Chosen& chosen) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < chosen.choices.size(); ++i) {
    const auto beaten = [&](const SizeChoice& c) { return beats(c, chosen.choices[i]); };
    if (std::none_of(chosen.choices.begin(), chosen.choices.end(), beaten)) out.push_back(i);
  }
  std::sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) {
    const auto& x = chosen.choices[a];
    const auto& y = chosen.choices[b];
    return std::make_tuple(x.training.days, x.loss, a) < std::make_tuple(y.training.days, y.loss, b);
  });
  return out;
}

}  // namespace planner

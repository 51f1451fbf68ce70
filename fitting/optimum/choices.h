#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fitting/optimum/optimum.h"

namespace fitting {

// One value of a variable with the optimum there.
struct Choice {
  double value = 0.0;
  Optimum at;
};

// The optimum at each of some values of a variable of the law (experts E, granularity G, sparsity S, repeats r). `largest`: the
// size that each value allows, from memory for instance.
std::vector<Choice> choices(const FittedLaw& law,
                            const OptimumQuestion& question,
                            const std::string& variable,
                            const std::vector<double>& values,
                            const std::function<std::optional<double>(double)>& largest = {});

// The one with the least loss of a budget, or the fewest FLOPs of a loss; nothing where none has an answer.
const Choice* best_choice(const std::vector<Choice>& choices, const OptimumQuestion& question);

// Active parameters of a mixture whose total stays within a limit: total = active + (E - experts_per_token) N_expert, with
// N_expert = expert_share active. Ludziejewski et al. 2025, arXiv 2502.05172.
double largest_active(double total_limit, double experts, double expert_share, double experts_per_token = 1.0);

// Tries of a task: k samples of t tokens for each of Q queries are t k Q tokens of inference. The optimum for each k; a law with a
// variable k gets it. Roberts et al. 2026, arXiv 2604.01411 (the budget 6 N D + 2 N t k Q).
std::vector<Choice> sample_choices(const FittedLaw& law,
                                   OptimumQuestion question,
                                   double tokens_a_sample,
                                   double queries,
                                   const std::vector<double>& samples);

// Share of tasks that k samples solve when a task's chance of success is Beta(u, v): 1 - B(u, v + k) / B(u, v).
double pass_at_k(double u, double v, double k);

// The unbiased estimate of it from n samples of which c succeeded: 1 - C(n - c, k) / C(n, k). Requires 0 <= c <= n and 1 <= k <= n.
double pass_at_k_of_samples(int n, int c, int k);

// FLOPs that one law needs for the loss of another at C FLOPs, over C (an architecture against another): it holds at C alone.
// Requires laws of C; nothing where the first never has that loss between 1 and 1e40 FLOPs.
std::optional<double> compute_multiplier(const FittedLaw& from, const FittedLaw& to, double C);

// A law of N and D with repeated data: the decay of tokens and parameters of data-constrained-muennighoff over the constants of
// another law of the form of Chinchilla. Throws InputError for a law of another form.
FittedLaw with_repetition(const FittedLaw& law);

}  // namespace fitting

#include "planner/budget/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/report.h"

namespace planner {

namespace {

std::string count_text(double value) {
  const auto [scale, unit] = value >= 1e12 ? std::pair{1e12, "T"} : value >= 1e9 ? std::pair{1e9, "B"} : std::pair{1e6, "M"};
  return simulator::three_digits(value / scale) + ' ' + unit;
}

std::string usd_text(const std::optional<double>& usd) {
  if (!usd) return "-";
  if (*usd >= 1e6) return fmt::format("${:.2f} M", *usd / 1e6);
  return *usd >= 1e4 ? fmt::format("${:.1f} K", *usd / 1e3) : fmt::format("${:.0f}", *usd);
}

std::string days_text(double days) { return simulator::three_digits(days); }

std::string loss_text(const SizeChoice& c) { return fmt::format("{:.4f} ({:.3f} to {:.3f})", c.loss, c.loss_low, c.loss_high); }

double epochs_of(const BudgetQuestion& q, const SizeChoice& c) {
  return q.unique_tokens ? c.training.tokens / *q.unique_tokens : 1.0;
}

std::string headline(const BudgetReport& b) {
  const auto& q = b.setup.question;
  const auto& c = b.answer.chosen.choices[*b.answer.best];
  const auto& pool = q.pools[c.pool];
  auto text = fmt::format("{} parameters, {} tokens, {}, {}; {} days on {} x {}", count_text(q.sizes[c.size].parameters),
                          count_text(c.training.tokens), pool.recipe.recipe, core::to_text(c.throughput.plan),
                          days_text(c.training.days), pool.means.gpus, b.request.machine.gpu);
  if (c.training.usd) text += ", " + usd_text(c.training.usd);
  if (c.training.serving_gpu_days > 0.0) {
    text += fmt::format(", beside {} GPU-days of serving", simulator::three_digits(c.training.serving_gpu_days));
    if (c.training.serving_usd) text += fmt::format(" ({} of the $)", usd_text(c.training.serving_usd));
  }
  return text + fmt::format("; loss {} nats a token\n", loss_text(c));
}

std::string shape_text(const BudgetReport& b, std::size_t size) {
  const auto& shape = b.setup.shapes[size];
  if (!shape) return b.setup.question.sizes[size].name;
  return fmt::format("{}: hidden {}, {} layers, {} heads of {} ({} of keys), feed-forward {}{}",
                     b.setup.question.sizes[size].name, shape->hidden, shape->layers, shape->heads, shape->head_dim,
                     shape->kv_heads, shape->ffn, shape->tied ? ", tied embeddings" : "");
}

std::string spread_text(const BudgetReport& b) {
  if (!b.answer.spread) return "";
  const auto& s = *b.answer.spread;
  return fmt::format("In 90 % of {} draws of the law the best size is {} to {} parameters on {} to {} tokens.\n", s.draws,
                     count_text(s.parameters_low), count_text(s.parameters_high), count_text(s.tokens_low),
                     count_text(s.tokens_high));
}

// Sizes that are worth as much: within the slack of the best of its pool.
std::string flat_text(const BudgetReport& b) {
  const auto& chosen = b.answer.chosen;
  const auto& best = chosen.choices[*b.answer.best];
  const double most = best.loss * (1.0 + ChooseOptions{}.slack);
  double low = b.setup.question.sizes[best.size].parameters, high = low;
  for (const auto& c : chosen.choices) {
    if (c.pool != best.pool || c.loss > most) continue;
    low = std::min(low, b.setup.question.sizes[c.size].parameters);
    high = std::max(high, b.setup.question.sizes[c.size].parameters);
  }
  if (low == high) return "";
  return fmt::format("Any size from {} to {} parameters comes within {:.2f} % of that loss.\n", count_text(low),
                     count_text(high), 100.0 * ChooseOptions{}.slack);
}

// The choices that a reader compares: all that are near the best of their pool.
std::vector<std::size_t> rows_of(const BudgetReport& b) {
  std::vector<std::size_t> rows;
  const auto& chosen = b.answer.chosen;
  for (std::size_t i = 0; i < chosen.choices.size(); ++i) {
    const auto& c = chosen.choices[i];
    const auto best = *best_of_pool(chosen, c.pool);
    if (b.setup.plans_all || i == best || c.loss <= chosen.choices[best].loss * (1.0 + 2.0 * ChooseOptions{}.slack))
      rows.push_back(i);
  }
  return rows;
}

std::string choice_row(const BudgetReport& b, std::size_t i) {
  const auto& q = b.setup.question;
  const auto& c = b.answer.chosen.choices[i];
  const auto& size = q.sizes[c.size];
  const auto& pool = q.pools[c.pool];
  const bool is_best = i == *best_of_pool(b.answer.chosen, c.pool);
  return fmt::format("{:<2}{:>8} {:>8} {:>7} {:>6} {:>6} {:<12} {:>24} {:>9} {:>6} {:>7} {:>10}  {}\n", is_best ? "*" : "",
                     count_text(size.parameters), count_text(c.training.tokens),
                     simulator::three_digits(c.training.tokens / size.parameters), simulator::three_digits(epochs_of(q, c)),
                     pool.means.gpus, pool.recipe.recipe, loss_text(c), simulator::seconds_text(c.throughput.step_s),
                     fmt::format("{:.1f}%", 100.0 * c.throughput.mfu), days_text(c.training.days), usd_text(c.training.usd),
                     core::to_text(c.throughput.plan));
}

// The next sizes below and above the best of a pool that were left out, and what is known of them.
std::string neighbour_rows(const BudgetReport& b, std::size_t best) {
  constexpr double near = 1.6;
  const auto& q = b.setup.question;
  const auto& c = b.answer.chosen.choices[best];
  std::string out;
  for (const auto& s : b.answer.chosen.bounded) {
    const double over = q.sizes[s.size].parameters / q.sizes[c.size].parameters;
    if (s.pool != c.pool || (!b.setup.plans_all && (over > near || over < 1.0 / near))) continue;
    out += fmt::format("  {:>8} {:>8} {:>7} {:>6} {:>6} {:<12} {:>24} {}\n", count_text(q.sizes[s.size].parameters), "", "", "",
                       q.pools[s.pool].means.gpus, q.pools[s.pool].recipe.recipe,
                       s.loss_at_least ? fmt::format("above {:.4f}", *s.loss_at_least) : "-", s.why);
  }
  return out;
}

std::string choice_rows(const BudgetReport& b) {
  auto out = fmt::format("{:<2}{:>8} {:>8} {:>7} {:>6} {:>6} {:<12} {:>24} {:>9} {:>6} {:>7} {:>10}  {}\n", "", "size",
                         "tokens", "D/N", "epochs", "GPUs", "recipe", "loss", "step", "MFU", "days", "$", "plan");
  for (const auto i : rows_of(b)) out += choice_row(b, i);
  return out + neighbour_rows(b, *b.answer.best) +
         "* least loss with these GPUs and this recipe. MFU: model_full, of the recipe's own peak.\n";
}

std::string asked_text(double low, double high) {
  const auto text = [](double x) { return std::isinf(x) ? std::string("no speed") : fmt::format("{:.2f}", x); };
  return text(low) == text(high) ? text(low) : text(low) + " to " + text(high);
}

std::string verdict_lines(const BudgetReport& b) {
  const auto& q = b.setup.question;
  std::string out;
  for (const auto& v : b.answer.verdicts) {
    const auto& pool = q.pools[v.pool];
    const auto& base = q.pools[v.base_pool].recipe.recipe;
    out += fmt::format(
        "  {}{}: {}{}: loss {:.4f} ({:.4f} to {:.4f} over its range) against {:.4f} with {}\n", pool.recipe.recipe,
        q.pools.size() > b.request.recipes.size() ? fmt::format(" on {} GPUs", pool.means.gpus) : "", name_of(v.pays),
        v.pays == Pays::undecided ? ", a coin toss" : "", v.loss, v.loss_low, v.loss_high, v.base_loss, base);
    out += fmt::format("    {:.2f} times the speed of {} at {} parameters, where its loss asks for {} {}\n", v.speed, base,
                       count_text(q.sizes[v.size].parameters), asked_text(v.asked_low, v.asked_high),
                       b.setup.size_is == SizeIs::free ? "(same tokens, more parameters)" : "(same size, more tokens)");
    if (!pool.recipe.flag.empty()) out += fmt::format("    flagged: {}\n", pool.recipe.flag);
  }
  for (const auto& u : b.setup.unavailable) out += fmt::format("  {}: not available: {}\n", u.recipe, u.why);
  return out.empty() ? out : "Recipes\n" + out;
}

std::string pareto_lines(const BudgetReport& b) {
  if (b.request.gpus.size() < 2 && b.request.budget.kind != Budget::Kind::flops) return "";
  std::string out = "None beats these in loss, days and $ at once\n";
  for (const auto i : b.answer.pareto) {
    const auto& c = b.answer.chosen.choices[i];
    const auto& pool = b.setup.question.pools[c.pool];
    out += fmt::format("  {:>7} days {:>10}  loss {:.4f}  {:>8} in {} on {} GPUs\n", days_text(c.training.days),
                       usd_text(c.training.usd), c.loss, count_text(b.setup.question.sizes[c.size].parameters),
                       pool.recipe.recipe, pool.means.gpus);
  }
  return out + '\n';
}

std::string counts_line(const BudgetReport& b) {
  const auto& chosen = b.answer.chosen;
  auto out =
      fmt::format("{} sizes x {} pools of GPUs and recipe: {} planned, {} left out by an exact bound or because nothing fits",
                  b.setup.question.sizes.size(), b.setup.question.pools.size(), chosen.choices.size(), chosen.bounded.size());
  if (!b.reproducible) out += fmt::format("; {:.1f} s", b.answer.elapsed_s);
  return out + '\n';
}

std::string notes(const BudgetReport& b) {
  const auto& law = b.setup.question.law;
  std::string out =
      fmt::format("Law: {} (L = {}; N counts {} parameters): {}\n", law.name, law.formula, name_of(law.counts), law.source);
  if (b.answer.best) {
    out += "Step time: " + b.answer.chosen.choices[*b.answer.best].throughput.interval_because + '\n';
  }
  for (const auto& a : b.setup.assumptions) out += "Assumes: " + a + '\n';
  for (const auto& w : b.answer.warnings) out += "Warning: " + w + '\n';
  return out;
}

// Where nothing was planned: why, by how many sizes.
std::string no_choice_text(const BudgetReport& b) {
  std::string out = "No size can be trained with this budget.\n";
  std::vector<std::pair<std::string, int>> counts;
  for (const auto& s : b.answer.chosen.bounded) {
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == s.why; });
    if (found == counts.end())
      counts.emplace_back(s.why, 1);
    else
      ++found->second;
  }
  for (const auto& [why, count] : counts) out += fmt::format("  {} sizes: {}\n", count, why);
  return out;
}

std::string csv_cell(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

}  // namespace

std::string budget_table(const BudgetReport& b) {
  if (!b.answer.best) return no_choice_text(b) + '\n' + verdict_lines(b) + notes(b);
  const auto& best = b.answer.chosen.choices[*b.answer.best];
  const auto verdicts = verdict_lines(b);
  return headline(b) + shape_text(b, best.size) + '\n' + flat_text(b) + spread_text(b) + '\n' + choice_rows(b) + '\n' +
         pareto_lines(b) + verdicts + (verdicts.empty() ? "" : "\n") + counts_line(b) + notes(b);
}

std::string budget_csv(const BudgetReport& b) {
  const auto& q = b.setup.question;
  std::string out =
      "model,parameters,active_parameters,tokens,epochs,gpus,recipe,loss,loss_low,loss_high,step_time_s,mfu,days,usd,"
      "fits,plan\n";
  for (const auto& c : b.answer.chosen.choices) {
    const auto& size = q.sizes[c.size];
    const auto& pool = q.pools[c.pool];
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},\"{}\"\n", size.name, size.parameters, size.active,
                       c.training.tokens, epochs_of(q, c), pool.means.gpus, pool.recipe.recipe, c.loss, c.loss_low, c.loss_high,
                       c.throughput.step_s, c.throughput.mfu, c.training.days, csv_cell(c.training.usd),
                       simulator::name_of(c.throughput.fits), core::to_text(c.throughput.plan));
  }
  return out;
}

std::string budget_markdown(const BudgetReport& b) {
  if (!b.answer.best) return no_choice_text(b) + "\n```\n" + verdict_lines(b) + notes(b) + "```\n";
  const auto& q = b.setup.question;
  std::string out = "**" + headline(b).substr(0, headline(b).size() - 1) + "**\n\n" + flat_text(b) + spread_text(b) +
                    "\n| size | tokens | epochs | GPUs | recipe | loss | MFU | days | $ | plan |\n"
                    "|---:|---:|---:|---:|---|---|---:|---:|---:|---|\n";
  for (const auto i : rows_of(b)) {
    const auto& c = b.answer.chosen.choices[i];
    const auto& pool = q.pools[c.pool];
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {:.1f} % | {} | {} | `{}` |\n", count_text(q.sizes[c.size].parameters),
                       count_text(c.training.tokens), simulator::three_digits(epochs_of(q, c)), pool.means.gpus,
                       pool.recipe.recipe, loss_text(c), 100.0 * c.throughput.mfu, days_text(c.training.days),
                       usd_text(c.training.usd), core::to_text(c.throughput.plan));
  }
  return out + "\n```\n" + pareto_lines(b) + verdict_lines(b) + counts_line(b) + notes(b) + "```\n";
}

}  // namespace planner

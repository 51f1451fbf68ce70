#include "planner/budget/question.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "planner/budget/law.h"
#include "planner/budget/repeats.h"

namespace planner {

namespace {

constexpr double sizes_either_way = 8.0;  // default sizes: the flat optimum over and times this
constexpr double smallest = 1e8, largest = 5e12;

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out(1);
  for (const char c : list) {
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

double peak_of(const simulator::Setting& setting) { return setting.cluster.gpu.peak(setting.recipe.compute_format)->value; }

// A recipe of the list, or nothing where the GPU cannot run it.
class Pools {
 public:
  Pools(BudgetRequest& request, BudgetSetup& out) : r_(request), out_(out) {}

  void fill() {
    check_machine();
    for (const auto gpus : r_.gpus) {
      for (const auto& recipe : recipes_) add(gpus, recipe);
    }
    r_.recipes = recipes_;
  }

 private:
  // Seen once, for what all pools share; finds the recipes that the GPU can run.
  void check_machine() {
    auto probe = r_.machine;
    probe.gpus = r_.gpus.empty() ? 0 : r_.gpus.front();
    const auto setting = simulator::make_setting(probe);
    if (r_.gpus.empty()) r_.gpus = {probe.gpus};
    r_.machine.gpu = probe.gpu, r_.machine.seq = probe.seq, r_.machine.attention = probe.attention;
    const bool by_default = r_.recipes.empty();
    const auto asked = by_default ? std::vector<std::string>{setting.recipe.name, "fp8", "nvfp4"} : r_.recipes;
    for (const auto& name : asked) {
      const auto recipe = core::load_recipe(name);
      if (std::find(recipes_.begin(), recipes_.end(), name) != recipes_.end()) continue;
      if (const auto why = simulator::why_not_recipe(recipe, setting.cluster.gpu)) {
        out_.unavailable.push_back({name, *why});
        if (!by_default) out_.warnings.push_back(fmt::format("--recipes {}: {}", name, *why));
      } else {
        recipes_.push_back(name);
      }
    }
    if (recipes_.empty()) throw core::InputError(fmt::format("--recipes {}: {}", asked.front(), out_.unavailable.front().why));
  }

  void add(std::int64_t gpus, const std::string& recipe) {
    PoolSetting pool{r_.machine, {}};
    pool.request.gpus = gpus, pool.request.recipe = recipe;
    pool.setting = simulator::make_setting(pool.request);
    Means means;
    means.budget = r_.budget;
    means.gpus = gpus;
    means.tokens_per_step = static_cast<double>(pool.request.global_batch * pool.setting.seq);
    if (const auto& price = pool.setting.cluster.usd_per_gpu_hour) means.usd_per_gpu_hour = price->value;
    if (!means.usd_per_gpu_hour && r_.budget.kind == Budget::Kind::usd) {
      throw core::InputError(fmt::format("--usd: no price of {} is known; expected --price", pool.request.gpu));
    }
    means.serving = {r_.inference_tokens, peak_of(pool.setting) * r_.serving_mfu};
    out_.question.pools.push_back({means, recipe_loss(recipe)});
    out_.pools.push_back(std::move(pool));
  }

  BudgetRequest& r_;
  BudgetSetup& out_;
  std::vector<std::string> recipes_;
};

void add_size(BudgetSetup& out, core::ModelSpec model, const std::optional<Shape>& shape) {
  const auto count = core::count_parameters(model);
  out.question.sizes.push_back({model.name, static_cast<double>(count.total), static_cast<double>(count.active),
                                counted(out.question.law.counts, count)});
  out.models.push_back(std::move(model));
  out.shapes.push_back(shape);
}

void add_range(BudgetSetup& out, const Family& family, double low, double high, std::size_t points) {
  for (const auto& shape : shapes_between(family, low, high, points)) add_size(out, model_of(family, shape), shape);
}

void add_sizes_near_optimum(BudgetSetup& out, const Family& family, std::size_t points) {
  double low = std::numeric_limits<double>::infinity(), high = 0.0;
  for (std::size_t i = 0; i < out.pools.size(); ++i) {
    const auto& setting = out.pools[i].setting;
    const double N = flat_optimum(out.question, i, peak_of(setting) * expected_mfu * expected_speed(setting));
    low = std::min(low, N), high = std::max(high, N);
  }
  add_range(out, family, std::clamp(low / sizes_either_way, smallest, largest),
            std::clamp(high * sizes_either_way, smallest, largest), points);
}

bool is_number(const std::string& text) { return !text.empty() && (text[0] == '.' || (text[0] >= '0' && text[0] <= '9')); }

void add_sizes(BudgetSetup& out, const BudgetRequest& r) {
  if (!r.model.empty()) {
    out.size_is = SizeIs::fixed;
    return add_size(out, core::load_model(r.model), std::nullopt);
  }
  const auto family = load_family(r.family);
  out.assumptions.push_back(
      fmt::format("sizes without a name have shapes of data/families/{}.json: {}", family.name, family.title));
  if (r.sizes.empty()) return add_sizes_near_optimum(out, family, r.points);
  if (const auto dots = r.sizes.find(".."); dots != std::string::npos) {
    const double low = simulator::parse_count(r.sizes.substr(0, dots), "--sizes");
    const double high = simulator::parse_count(r.sizes.substr(dots + 2), "--sizes");
    if (high < low) throw core::InputError(fmt::format("--sizes: found {}, expected the smaller size first", r.sizes));
    return add_range(out, family, low, high, r.points);
  }
  out.plans_all = true;
  for (const auto& item : split(r.sizes)) {
    if (is_number(item)) {
      const auto shape = shape_near(family, simulator::parse_count(item, "--sizes"));
      if (std::find(out.shapes.begin(), out.shapes.end(), shape) == out.shapes.end())
        add_size(out, model_of(family, shape), shape);
    } else {
      add_size(out, core::load_model(item), std::nullopt);
    }
  }
}

// Models by name, for the longest sequence that all of them read.
void take_sequence(BudgetRequest& r) {
  std::vector<std::string> names = r.model.empty() ? split(r.sizes) : std::vector<std::string>{r.model};
  for (const auto& name : names) {
    if (name.empty() || (r.model.empty() && is_number(name))) continue;
    auto probe = r.machine;
    probe.model = name, probe.gpus = r.gpus.empty() ? 0 : r.gpus.front();
    simulator::make_setting(probe);  // complains where the sequence is too long
    r.machine.seq = r.machine.seq == 0 ? probe.seq : std::min(r.machine.seq, probe.seq);
  }
}

void add_repeats(BudgetSetup& out, const BudgetRequest& r) {
  auto& q = out.question;
  q.unique_tokens = r.unique_tokens;
  if (!r.unique_tokens || q.law.knows_repeats) return;
  const auto repeats = load_repeats();
  for (const auto& other : repeats.others) out.other_repeats.push_back(with_repeats(q.law, other));
  q.law = with_repeats(q.law, repeats.constants);
  out.assumptions.push_back("repeated tokens: " + repeats.source);
  out.warnings.push_back(repeats.warning);
}

void add_assumptions(BudgetSetup& out, const BudgetRequest& r) {
  const auto& means = out.question.pools.front().means;
  if (r.inference_tokens > 0.0) {
    auto text = fmt::format("serving {:.3g} tokens takes 2 FLOPs a parameter and token", r.inference_tokens);
    if (r.budget.kind != Budget::Kind::flops) {
      text += fmt::format(", at {:.0f} % of the 16-bit peak (--serving-mfu)", 100.0 * r.serving_mfu);
      if (means.usd_per_gpu_hour) text += fmt::format(" on GPUs at ${:.2f} an hour", *means.usd_per_gpu_hour);
    }
    out.assumptions.push_back(text + "; paid for from the same budget");
  }
  if (out.question.law.draws.empty()) {
    out.warnings.push_back(fmt::format(
        "{} has no draws: the interval of the loss is that of the throughput and the recipe alone", out.question.law.name));
  }
  out.warnings.insert(out.warnings.end(), out.question.law.warnings.begin(), out.question.law.warnings.end());
}

std::string outside(double value, const char* unit, const std::optional<LossModel::Range>& range) {
  if (!range || (value >= range->low && value <= range->high)) return "";
  const bool over = value > range->high;
  return fmt::format("an extrapolation of the law: {:.3g} {} are {:.3g} times the {} of its runs", value, unit,
                     value / (over ? range->high : range->low), over ? "most" : "least");
}

}  // namespace

double flat_optimum(const BudgetQuestion& q, std::size_t pool, double flops_per_s) {
  const auto& means = q.pools[pool].means;
  const auto loss = under(q.law.loss, q.pools[pool].recipe);
  double best = smallest, least = std::numeric_limits<double>::infinity();
  for (double N = 1e7; N < 1e14; N *= 1.05) {
    const double step = 6.0 * N * means.tokens_per_step / (static_cast<double>(means.gpus) * flops_per_s);
    const auto training = training_for(means, N, step);
    if (!training) continue;
    const double l = loss(N, training->tokens, distinct(training->tokens, q.unique_tokens));
    if (l < least) least = l, best = N;
  }
  return best;
}

std::vector<std::string> extrapolations(const LossModel& law, double N, double D, double flops) {
  std::vector<std::string> out;
  for (const auto& text : {outside(N, "parameters", law.N), outside(D, "tokens", law.D),
                           outside(D / N, "tokens a parameter", law.tokens_per_parameter), outside(flops, "FLOPs", law.C)}) {
    if (!text.empty()) out.push_back(text);
  }
  constexpr double too_far = 100.0;
  if (law.C && flops > too_far * law.C->high) {
    out.push_back(
        fmt::format("over {:.0f} times the FLOPs of any run of {}: take its loss as a ranking of choices, not as a "
                    "forecast",
                    too_far, law.name));
  }
  return out;
}

BudgetSetup set_up(BudgetRequest& r) {
  BudgetSetup out;
  out.question.law = loss_model_of(r.law);
  take_sequence(r);
  Pools(r, out).fill();
  add_assumptions(out, r);
  add_repeats(out, r);
  add_sizes(out, r);
  return out;
}

}  // namespace planner

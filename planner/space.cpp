#include "planner/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "core/error.h"
#include "core/plan/dimension.h"
#include "core/plan/schedule.h"

namespace planner {

namespace {

using core::Layout;
using core::ParallelPlan;
using core::Recompute;

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    out.push_back(d);
    if (d != n / d) out.push_back(n / d);
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool fixes(const Question& q, std::string_view key) {
  return std::find(q.fixed.keys.begin(), q.fixed.keys.end(), key) != q.fixed.keys.end();
}

// A short name for a reason, so that like ones are counted together: what stands before its first number.
std::string kind_of(const std::string& dimension, const std::string& reason) {
  std::string words;
  for (const char c : reason) {
    if (c >= '0' && c <= '9') {
      if (words.empty() || words.back() != 'N') words += 'N';
    } else {
      words += c;
    }
  }
  return dimension + ": " + words;
}

class Walk {
 public:
  Walk(const Question& q, const Axes& axes, std::map<std::string, Illegal>& illegal,
       const std::function<void(const Block&)>& visit)
      : q_(q), axes_(axes), illegal_(illegal), visit_(visit) {}

  std::int64_t run() {
    for (const auto pp : axes_.pp) {
      for (const auto& schedule : axes_.schedules) {
        const auto stages = core::find_schedule(schedule)->stages_a_rank;
        const auto fixed = std::vector{stages.value_or(1)};
        for (const auto vpp : stages ? fixed : axes_.vpp) walk_schedule(pp, vpp, schedule);
      }
    }
    return legal_;
  }

 private:
  // Groups what shares a number of micro-batches, so that its table is written once.
  void walk_schedule(std::int64_t pp, std::int64_t vpp, const std::string& schedule) {
    std::map<std::int64_t, Block> blocks;
    for (const auto tp : axes_.tp) {
      if (q_.gpus % (tp * pp) != 0) continue;
      const auto dp = q_.gpus / (tp * pp);
      if (fixes(q_, "dp") && q_.fixed.plan.dp != dp) continue;
      for (const auto mb : axes_.micro_batch) walk_shape(tp, pp, vpp, dp, mb, schedule, blocks);
    }
    for (const auto& [m, block] : blocks) visit_(block);
  }

  void walk_shape(std::int64_t tp, std::int64_t pp, std::int64_t vpp, std::int64_t dp, std::int64_t mb,
                  const std::string& schedule, std::map<std::int64_t, Block>& blocks) {
    ParallelPlan plan = q_.fixed.plan;
    plan.tp = tp, plan.pp = pp, plan.vpp = vpp, plan.dp = dp;
    plan.micro_batch = mb;
    plan.global_batch = q_.global_batch;
    plan.schedule = schedule;
    plan.recipe = q_.recipe;
    for (const bool sp : axes_.sp) {
      if (sp && tp == 1) continue;
      plan.sp = sp;
      for (const auto& layout : layouts_of(plan)) {
        plan.layout = layout.first;
        plan.layers = layout.second;
        if (const auto reason = why_not(plan)) {
          auto& entry = illegal_[*reason];
          if (entry.count++ == 0) entry.example = core::to_text(plan);
          continue;
        }
        auto& block = blocks[plan.micro_batches()];
        if (block.families.empty()) {
          block.schedule = schedule, block.pp = pp, block.vpp = vpp, block.micro_batches = plan.micro_batches();
        }
        add_families(plan, block);
      }
    }
  }

  // Distinct layouts: both where layers divide and the slots differ.
  std::vector<std::pair<Layout, std::vector<std::int64_t>>> layouts_of(const ParallelPlan& plan) const {
    if (q_.fixed.has_layout) return {{q_.fixed.plan.layout, q_.fixed.plan.layers}};
    std::vector<std::pair<Layout, std::vector<std::int64_t>>> out;
    const auto layers = q_.model->layers();
    const bool even = layers % plan.stages() == 0;
    for (const auto layout : axes_.layouts) {
      if (layout == Layout::even && (even || axes_.layouts.size() == 1)) out.push_back({layout, {}});
      if (layout == Layout::slots && plan.stages() > 1) out.push_back({layout, {}});
    }
    if (out.empty()) out.push_back({Layout::even, {}});
    return out;
  }

  std::optional<std::string> why_not(const ParallelPlan& plan) const {
    for (const auto* dimension : core::dimensions::all()) {
      if (const auto reason = dimension->why_not(*q_.model, plan, q_.seq)) return kind_of(std::string(dimension->name), *reason);
    }
    if (plan.sp && q_.seq % plan.tp != 0) return "sp: the sequence does not divide by tp";
    const auto* schedule = core::find_schedule(plan.schedule);
    CORE_ASSERT(schedule != nullptr);
    if (const auto reason = schedule->why_not(plan.pp, plan.vpp, plan.micro_batches())) {
      return kind_of("schedule", *reason);
    }
    return std::nullopt;
  }

  void add_families(const ParallelPlan& legal, Block& block) {
    const auto layers = core::layers_of_stages(legal, q_.model->layers());
    const auto most = *std::max_element(layers.begin(), layers.end());
    for (const auto zero : axes_.zero) {
      if (zero > 0 && legal.dp == 1) continue;  // the same plan as zero=0
      for (const auto recompute : axes_.recompute) {
        ParallelPlan plan = legal;
        plan.zero = zero;
        plan.recompute = recompute;
        if (fixes(q_, "recompute")) {
          plan.recompute_layers = q_.fixed.plan.recompute_layers;
          add(block, {plan, 0});
          continue;
        }
        plan.recompute_layers = 0;
        add(block, {plan, 0});
        if (recompute == Recompute::full && axes_.partial_recompute && most > 1) {
          plan.recompute_layers = 1;
          add(block, {plan, most});
        }
      }
    }
  }
  void add(Block& block, Family family) {
    legal_ += family.plans();
    block.families.push_back(std::move(family));
  }

  const Question& q_;
  const Axes& axes_;
  std::map<std::string, Illegal>& illegal_;
  const std::function<void(const Block&)>& visit_;
  std::int64_t legal_ = 0;
};

}  // namespace

Axes axes_of(const Question& q) {
  const auto& fixed = q.fixed.plan;
  const auto layers = q.model->layers();
  Axes axes;
  axes.tp = fixes(q, "tp") ? std::vector{fixed.tp} : divisors(q.gpus);
  axes.sp = fixes(q, "sp") ? std::vector<bool>{fixed.sp} : std::vector<bool>{false, true};
  axes.pp = fixes(q, "pp") ? std::vector{fixed.pp} : divisors(q.gpus);
  std::erase_if(axes.pp, [&](std::int64_t pp) { return pp > layers + 2; });
  axes.micro_batch = fixes(q, "mb") ? std::vector{fixed.micro_batch} : divisors(q.global_batch);
  for (const auto* s : core::schedules::all()) {
    // Tables with other cells cannot be shortened yet, so that searching them takes long: only when asked for.
    if (!s->splits_backward && !s->pairs) axes.schedules.emplace_back(s->name);
  }
  if (q.fixed.has_schedule) axes.schedules = {fixed.schedule};
  if (fixes(q, "vpp")) {
    axes.vpp = {fixed.vpp};
    if (!q.fixed.has_schedule) axes.schedules = fixed.vpp > 1 ? std::vector<std::string>{"interleaved"}
                                                              : std::vector<std::string>{"1f1b", "gpipe"};
  } else {
    // A chunk of the interleaved schedule has a layer at least, the embedding's and the output's excepted.
    for (std::int64_t v = 2; v <= (layers + 2) / 2; ++v) axes.vpp.push_back(v);
  }
  axes.layouts = {Layout::even, Layout::slots};
  axes.zero = q.fixed.has_zero ? std::vector{fixed.zero} : std::vector{0, 1, 2, 3};
  axes.recompute = fixes(q, "recompute")
                       ? std::vector{fixed.recompute}
                       : std::vector{Recompute::none, Recompute::selective, Recompute::full};
  return axes;
}

std::int64_t for_each_block(const Question& question,
                            const Axes& axes,
                            std::map<std::string, Illegal>& illegal,
                            const std::function<void(const Block&)>& visit) {
  return Walk(question, axes, illegal, visit).run();
}

}  // namespace planner

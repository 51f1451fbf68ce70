#include "planner/advice.h"

#include <fmt/format.h>

#include <algorithm>

namespace planner {

namespace {

struct Candidate {
  core::ParallelPlan plan;
  std::string what;
};

// Collects the legal ones of a plan's single changes.
class Changes {
 public:
  Changes(const simulator::Setting& setting, const simulator::Bench& bench, const core::ParallelPlan& plan)
      : setting_(setting), bench_(bench), plan_(plan) {}

  std::vector<Candidate> all() {
    recompute();
    sharding();
    offload();
    shape();
    return std::move(out_);
  }

 private:
  void add(core::ParallelPlan changed, std::string what) {
    if (!core::why_not(setting_.model, changed, plan_.gpus(), setting_.seq) &&
        !simulator::why_not_offload(setting_, bench_, changed)) {
      out_.push_back({std::move(changed), std::move(what)});
    }
  }
  void recompute() {
    auto p = plan_;
    if (plan_.recompute == core::Recompute::none) {
      p.recompute = core::Recompute::selective;
      add(p, "recompute=selective");
    }
    if (plan_.recompute == core::Recompute::full) return;
    p.recompute = core::Recompute::full;
    const auto layers = core::layers_of_stages(plan_, setting_.model.layers());
    for (std::int64_t n = 1; n < *std::max_element(layers.begin(), layers.end()); ++n) {
      p.recompute_layers = n;
      add(p, fmt::format("recompute=full:{}", n));
    }
    p.recompute_layers = 0;
    add(p, "recompute=full");
  }
  void sharding() {
    for (int zero = plan_.zero + 1; zero <= 3 && plan_.replicas() > 1; ++zero) {
      auto p = plan_;
      p.zero = zero;
      add(p, fmt::format("zero={}", zero));
    }
    if (!plan_.sp && plan_.tp > 1) {
      auto p = plan_;
      p.sp = true;
      add(p, "sp");
    }
  }
  void offload() {
    if (!plan_.offload.optimizer) {
      auto p = plan_;
      p.offload.optimizer = true;
      add(p, "offload=" + core::offload_text(p.offload));
    }
    if (!plan_.offload.activations) {
      auto p = plan_;
      p.offload.activations = true;
      add(p, "offload=" + core::offload_text(p.offload));
    }
  }
  void shape() {
    for (auto mb = plan_.micro_batch / 2; mb >= 1; mb /= 2) {
      auto p = plan_;
      p.micro_batch = mb;
      add(p, fmt::format("mb={}", mb));
    }
    for (const auto loss : {core::Loss::fused, core::Loss::linear}) {
      if (plan_.loss != core::Loss::unfused) break;
      auto p = plan_;
      p.loss = loss;
      add(p, loss == core::Loss::fused ? "loss=fused" : "loss=linear");
    }
    for (std::int64_t ep = 2 * plan_.ep; ep <= plan_.ranks_of_stage(); ep *= 2) {
      auto p = plan_;
      p.ep = ep;
      add(p, fmt::format("ep={}", ep));
    }
    for (std::int64_t k = 2; k <= plan_.dp; k *= 2) {
      if (plan_.dp % k != 0) continue;
      auto p = plan_;
      p.dp = plan_.dp / k, p.tp = plan_.tp * k;
      p.sp = plan_.sp || plan_.ep > 1;
      add(p, fmt::format("tp={} dp={}", p.tp, p.dp));
      p = plan_;
      p.dp = plan_.dp / k, p.cp = plan_.cp * k;
      add(p, fmt::format("cp={} dp={}", p.cp, p.dp));
      p = plan_;
      p.dp = plan_.dp / k, p.pp = plan_.pp * k;
      if (p.layout == core::Layout::even && setting_.model.layers() % p.stages() != 0) p.layout = core::Layout::slots;
      add(p, fmt::format("pp={} dp={}", p.pp, p.dp));
    }
  }

  const simulator::Setting& setting_;
  const simulator::Bench& bench_;
  const core::ParallelPlan& plan_;
  std::vector<Candidate> out_;
};

bool fits(simulator::Pricer& pricer, const simulator::Setting& setting, const core::ParallelPlan& plan) {
  const auto table = simulator::short_table(*core::find_schedule(plan.schedule), plan.pp, plan.vpp, plan.micro_batches());
  std::vector<simulator::RankMemory> memory;
  pricer.memory(plan, table, memory);
  std::vector<double> of_host;
  for (const auto& rank : memory) of_host.push_back(rank.host);
  const auto& node = setting.cluster.node;
  if (core::node_host_memory(of_host, plan, node.gpus, setting.framework_of(plan)) > node.host_memory.value) return false;
  return std::all_of(memory.begin(), memory.end(), [&](const simulator::RankMemory& rank) {
    return static_cast<double>(rank.total()) <= setting.cluster.gpu.memory_usable.value;
  });
}

}  // namespace

std::optional<Change> smallest_change(const simulator::Setting& setting,
                                      const simulator::Bench& bench,
                                      const core::ParallelPlan& plan) {
  std::optional<Change> best;
  simulator::Pricer pricer(setting, bench);
  for (auto& candidate : Changes(setting, bench, plan).all()) {
    if (!fits(pricer, setting, candidate.plan)) continue;
    auto step = simulator::simulate_step(setting, bench, candidate.plan, core::Grain::mixed, core::Fold::yes,
                                         simulator::Detail::answer);
    if (!best || step.report.step_time_s < best->report.step_time_s) {
      best = Change{std::move(candidate.what), std::move(step.report)};
    }
  }
  return best;
}

std::vector<Ranked> better_plans(const simulator::Setting& setting,
                                 const simulator::Bench& bench,
                                 const simulator::StepReport& report) {
  const auto& plan = report.plan;
  Question question;
  question.model = &setting.model;
  question.gpus = plan.gpus(), question.global_batch = plan.global_batch, question.seq = setting.seq;
  question.recipe = plan.recipe;
  question.gpus_per_node = setting.gpus_together();
  question.dispatch = best_dispatch(bench.curves());
  SearchOptions options;
  options.keep = 3;
  // Rounded up: what is as fast is sorted out below.
  if (report.fits != simulator::Fits::no) options.no_slower_than = core::to_sim_time(core::Seconds{report.step_time_s}) + 1;
  auto best = search(setting, bench, question, axes_of(question), options).best;
  std::erase_if(best, [&](const Ranked& r) {
    return report.fits != simulator::Fits::no && core::to_seconds(r.time).value >= report.step_time_s;
  });
  return best;
}

}  // namespace planner

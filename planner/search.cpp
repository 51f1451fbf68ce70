#include "planner/search.h"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/error.h"
#include "planner/parallel.h"

namespace planner {

namespace {

using core::ParallelPlan;
using core::Recompute;
using core::SimTime;

// What a thread keeps between blocks.
struct Worker {
  Worker(const simulator::Setting& setting, const simulator::Bench& bench) : pricer(setting, bench) {}
  simulator::Pricer pricer;
  simulator::CellRunner runner;
  simulator::CellTimes times;
  std::vector<simulator::RankMemory> memory;
};

// The best `keep` so far; the last of them is what others must beat.
class Best {
 public:
  explicit Best(std::size_t keep) : keep_(keep) {}
  void add(Ranked plan) {
    const auto at = std::upper_bound(plans_.begin(), plans_.end(), plan);
    if (plans_.size() == keep_ && at == plans_.end()) return;
    plans_.insert(at, std::move(plan));
    if (plans_.size() > keep_) plans_.pop_back();
  }
  SimTime threshold() const {
    return plans_.size() == keep_ ? plans_.back().time : std::numeric_limits<SimTime>::max();
  }
  const std::vector<Ranked>& plans() const { return plans_; }

 private:
  std::size_t keep_;
  std::vector<Ranked> plans_;
};

struct BlockResult {
  std::vector<Ranked> best;
  std::int64_t evaluated = 0, pruned = 0, dominated = 0, memory_rejected = 0, cells = 0;
  double nearest_short = std::numeric_limits<double>::infinity();
  std::optional<ParallelPlan> nearest;
};

// Searches one block: the families of one schedule table.
class BlockSearch {
 public:
  BlockSearch(const simulator::Setting& setting, const Block& block, std::int64_t number, const Best& so_far,
              const SearchOptions& options, Worker& worker)
      : setting_(setting), block_(block), number_(number), options_(options), worker_(worker),
        schedule_(*core::find_schedule(block.schedule)), best_(so_far), limit_(setting.cluster.gpu.memory_usable.value),
        tables_{simulator::short_table(schedule_, block.pp, block.vpp, block.micro_batches)},
        memory_table_(until_steady(tables_.front())) {}

  BlockResult run() {
    for (std::size_t i = 0; i < block_.families.size();) i = choose(i);
    evaluate();
    result_.cells = worker_.runner.cells_run() - cells_before_;
    return std::move(result_);
  }

 private:
  // The programs of a table up to the end of the second round of their steady state. What is in flight later is no more:
  // rounds repeat, and the cool-down only frees.
  core::ScheduleTable until_steady(const core::ScheduleTable& table) const {
    auto out = table;
    const auto round = simulator::round_of_short_tables(schedule_, block_.pp, block_.micro_batches);
    if (round == 0) return out;
    for (auto& rank : out.ranks) {
      const auto first_backward = std::find_if(rank.begin(), rank.end(), [](const core::Action& a) {
        return a.kind != core::Action::Kind::forward;
      });
      const auto end = (first_backward - rank.begin()) + 4 * round * block_.vpp;
      if (end < static_cast<std::ptrdiff_t>(rank.size())) rank.resize(static_cast<std::size_t>(end));
    }
    return out;
  }

  struct Candidate {
    ParallelPlan plan;
    std::int64_t order = 0;
    SimTime bound = 0;
  };

  // Families that differ in recompute only stand one after another: none, selective, full, full on n layers.
  std::size_t choose(std::size_t begin) {
    auto end = begin + 1;
    while (end < block_.families.size() && same_but_recompute(block_.families[begin].plan, block_.families[end].plan)) ++end;
    bool settled = false;
    std::optional<std::size_t> partial, full;
    for (auto i = begin; i < end; ++i) {
      const auto& family = block_.families[i];
      if (family.most_layers > 0) { partial = i; continue; }
      if (settled) { result_.dominated += family.plans(); continue; }
      if (family.plan.recompute == Recompute::full && family.plan.recompute_layers == 0) { full = i; continue; }
      if (fits(family.plan)) {
        keep(family.plan, static_cast<std::int64_t>(i));
        settled = family.plan.recompute == Recompute::none;
      }
    }
    if (settled) {
      if (partial) result_.dominated += block_.families[*partial].plans();
      if (full) result_.dominated += 1;
    } else if (full) {
      choose_full(*full, partial);
    }
    return end;
  }

  // Of full recompute on n layers the least n that fits; on all of them at last.
  void choose_full(std::size_t full, std::optional<std::size_t> partial) {
    const auto& plan = block_.families[full].plan;
    const auto over = over_limit(plan);
    const std::int64_t others = partial ? block_.families[*partial].plans() : 0;
    std::int64_t layers = 0;
    if (partial && over && *over <= saved_by_a_last_layer(plan)) layers = least_layers(block_.families[*partial]);
    if (layers > 0) {
      auto few = block_.families[*partial].plan;
      few.recompute_layers = layers;
      keep(few, static_cast<std::int64_t>(*partial));
      result_.memory_rejected += layers - 1;
      result_.dominated += others - layers + 1;
      return;
    }
    result_.memory_rejected += others;
    if (over && *over <= 0.0) keep(plan, static_cast<std::int64_t>(full));
    else ++result_.memory_rejected;
  }

  static bool same_but_recompute(const ParallelPlan& a, const ParallelPlan& b) {
    return a.tp == b.tp && a.sp == b.sp && a.dp == b.dp && a.zero == b.zero && a.micro_batch == b.micro_batch &&
           a.layout == b.layout && a.layers == b.layers;  // the rest is the block's
  }

  // Memory falls with the number of recomputed layers, but for one step: when the last layer of a stage is recomputed too, its
  // input is kept besides what its backward pass needs at once. So it falls between the sizes of stages, and recompute of all
  // layers takes at most that input more than any less.
  double saved_by_a_last_layer(const ParallelPlan& plan) {
    const auto& framework = setting_.framework_of(plan);
    const double input = worker_.pricer.bodies(plan).send_bytes + framework.allocation_unit.value;
    return input * (1.0 + framework.fragmentation) + 1.0;
  }
  // The least number of layers that fits, 0 where none does.
  std::int64_t least_layers(const Family& family) {
    auto plan = family.plan;
    const auto fits_with = [&](std::int64_t n) {
      plan.recompute_layers = n;
      const auto over = over_limit(plan);
      return over && *over <= 0.0;
    };
    auto sizes = core::layers_of_stages(plan, setting_.model.layers());
    std::sort(sizes.begin(), sizes.end());
    std::int64_t first = 1;
    for (const auto size : sizes) {
      if (size <= first) {
        first = std::max(first, size);
        continue;
      }
      if (fits_with(size - 1)) {
        std::int64_t low = first - 1, high = size - 1;  // low does not fit, high does
        while (high - low > 1) {
          const auto middle = low + (high - low) / 2;
          (fits_with(middle) ? high : low) = middle;
        }
        return high;
      }
      first = size;
    }
    return 0;
  }

  bool fits(const ParallelPlan& plan) {
    const auto over = over_limit(plan);
    if (over && *over <= 0.0) return true;
    ++result_.memory_rejected;
    return false;
  }
  // By how much the fullest stage is over the limit. Nothing where what stays all the step is over it already, by more than
  // the nearest miss: recompute cannot help, and the plan is not worth naming.
  std::optional<double> over_limit(const ParallelPlan& plan) {
    worker_.pricer.resident_memory(plan, worker_.memory);
    const double at_least = most_memory() - limit_;
    if (at_least > 0.0 && at_least >= result_.nearest_short) return std::nullopt;
    worker_.pricer.memory(plan, memory_table_, worker_.memory);
    const double over = most_memory() - limit_;
    if (over > 0.0 && over < result_.nearest_short) {
      result_.nearest_short = over;
      result_.nearest = plan;
    }
    return over;
  }

  double most_memory() const {
    std::int64_t most = 0;
    for (const auto& rank : worker_.memory) most = std::max(most, rank.total());
    return static_cast<double>(most);
  }

  void keep(const ParallelPlan& plan, std::int64_t order) {
    worker_.pricer.cell_times(plan, worker_.times);
    candidates_.push_back({plan, order, worker_.pricer.lower_bound(plan, worker_.times) + overhead(plan)});
  }
  SimTime overhead(const ParallelPlan& plan) const {
    return core::to_sim_time(setting_.framework_of(plan).step_overhead);
  }

  // Runs candidates from the smallest bound on; those whose bound is over the last kept plan cannot enter.
  void evaluate() {
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.bound, a.order) < std::tie(b.bound, b.order);
    });
    for (const auto& c : candidates_) {
      if (options_.prune && c.bound > best_.threshold()) {
        ++result_.pruned;
        continue;
      }
      ++result_.evaluated;
      const Ranked ranked{c.plan, makespan(c.plan) + overhead(c.plan), number_, c.order};
      CORE_ASSERT(ranked.time >= c.bound);
      best_.add(ranked);
      result_.best.push_back(ranked);
    }
  }

  // Makespan from the shortest table that shows the period, or from the whole one.
  SimTime makespan(const ParallelPlan& plan) {
    worker_.pricer.cell_times(plan, worker_.times);
    const auto round = simulator::round_of_short_tables(schedule_, block_.pp, block_.micro_batches);
    for (std::size_t i = 0;; ++i) {
      if (i == tables_.size()) tables_.push_back(longer_table(tables_.back().micro_batches));
      const auto& table = tables_[i];
      if (table.micro_batches == block_.micro_batches) return worker_.runner.run(table, worker_.times);
      if (const auto time = worker_.runner.run_periodic(table, round, block_.micro_batches, worker_.times)) return *time;
    }
  }
  core::ScheduleTable longer_table(std::int64_t micro_batches) const {
    const auto missing = block_.micro_batches - micro_batches;
    const auto added = std::min(missing, (3 * micro_batches + block_.pp - 1) / block_.pp * block_.pp);
    return schedule_.table(block_.pp, block_.vpp, micro_batches + added);
  }

  const simulator::Setting& setting_;
  const Block& block_;
  std::int64_t number_;
  const SearchOptions& options_;
  Worker& worker_;
  const core::Schedule& schedule_;
  Best best_;
  double limit_;
  std::vector<core::ScheduleTable> tables_;
  core::ScheduleTable memory_table_;
  std::vector<Candidate> candidates_;
  BlockResult result_;
  std::int64_t cells_before_ = worker_.runner.cells_run();
};

// Runs blocks in rounds of a fixed size: what a block must beat is fixed when its round begins, so that the result (and the
// counts) do not depend on threads.
class Search {
 public:
  Search(const simulator::Setting& setting, const simulator::Bench& bench, const SearchOptions& options)
      : setting_(setting), options_(options), best_(options.keep),
        workers_([&setting, &bench] { return Worker(setting, bench); }) {}

  void add(const Block& block) {
    waiting_.push_back(block);
    if (waiting_.size() == blocks_a_round) run_round();
  }
  void run_round() {
    if (waiting_.empty() || stopped_) return waiting_.clear();
    std::vector<BlockResult> results(waiting_.size());
    parallel_for(waiting_.size(), [&](std::size_t i) {
      results[i] = BlockSearch(setting_, waiting_[i], done_ + static_cast<std::int64_t>(i), best_, options_,
                               workers_.local()).run();
    });
    for (auto& r : results) merge(r);
    done_ += static_cast<std::int64_t>(waiting_.size());
    waiting_.clear();
    if (options_.progress) options_.progress(out_.evaluated + out_.pruned + out_.memory_rejected + out_.dominated);
    stopped_ = options_.stop && options_.stop();
  }
  SearchResult finish(std::int64_t searched, const std::map<std::string, Illegal>& illegal) {
    run_round();
    out_.searched = searched;
    out_.best = best_.plans();
    if (out_.memory_rejected > 0 && nearest_) {
      out_.rejected.push_back({"memory", out_.memory_rejected, core::to_text(*nearest_), nearest_short_ / core::gibibyte});
    }
    for (const auto& [reason, entry] : illegal) out_.rejected.push_back({reason, entry.count, entry.example, 0.0});
    return std::move(out_);
  }

 private:
  static constexpr std::size_t blocks_a_round = 16;

  void merge(BlockResult& r) {
    for (auto& plan : r.best) best_.add(std::move(plan));
    out_.evaluated += r.evaluated;
    out_.pruned += r.pruned;
    out_.dominated += r.dominated;
    out_.memory_rejected += r.memory_rejected;
    out_.cells += r.cells;
    if (r.nearest && r.nearest_short < nearest_short_) nearest_short_ = r.nearest_short, nearest_ = r.nearest;
  }

  const simulator::Setting& setting_;
  const SearchOptions& options_;
  Best best_;
  tbb::enumerable_thread_specific<Worker> workers_;
  std::vector<Block> waiting_;
  std::int64_t done_ = 0;
  bool stopped_ = false;
  SearchResult out_;
  double nearest_short_ = std::numeric_limits<double>::infinity();
  std::optional<ParallelPlan> nearest_;
};

}  // namespace

SearchResult search(const simulator::Setting& setting,
                    const simulator::Bench& bench,
                    const Question& question,
                    const Axes& axes,
                    const SearchOptions& options) {
  std::optional<tbb::global_control> control;
  if (options.threads > 0) {
    control.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(options.threads));
  }
  Search run(setting, bench, options);
  std::map<std::string, Illegal> illegal;
  const auto searched = for_each_block(question, axes, illegal, [&](const Block& block) { run.add(block); });
  return run.finish(searched, illegal);
}

}  // namespace planner

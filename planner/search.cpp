#include "planner/search.h"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "planner/parallel.h"

namespace planner {

namespace {

using core::ParallelPlan;
using core::Recompute;
using core::SimTime;

SimTime overhead(const simulator::Setting& setting, const ParallelPlan& plan) {
  return core::to_sim_time(setting.framework_of(plan).step_overhead);
}

// What of a schedule's table memory depends on: its warm-up and two rounds of its steady state. What is in flight later is no
// more: rounds repeat, and the cool-down only frees.
core::ScheduleTable memory_table(const core::Schedule& schedule, std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches) {
  const auto round = core::steady_round(schedule, pp, micro_batches);
  if (round == 0) return schedule.table(pp, vpp, micro_batches);
  const auto step = std::lcm(round, std::lcm(pp, std::int64_t{2}));
  const auto enough = 4 * pp + 6 * round;
  auto out = schedule.table(pp, vpp, micro_batches - std::max<std::int64_t>(0, micro_batches - enough) / step * step);
  if (simulator::round_of_short_tables(schedule, pp, micro_batches) == 0) return out;
  for (auto& rank : out.ranks) {
    const auto first_backward = std::find_if(rank.begin(), rank.end(), [](const core::Action& a) {
      return a.kind != core::Action::Kind::forward;
    });
    const auto end = (first_backward - rank.begin()) + 4 * round * out.vpp;
    if (end < static_cast<std::ptrdiff_t>(rank.size())) rank.resize(static_cast<std::size_t>(end));
  }
  return out;
}

// Most micro-batches of all its stages together that a rank has forward done and not backward.
std::vector<std::int64_t> most_in_flight_of_ranks(const core::ScheduleTable& table) {
  std::vector<std::int64_t> out;
  for (const auto& rank : table.ranks) {
    std::int64_t now = 0, most = 0;
    for (const auto& a : rank) {
      if (a.kind == core::Action::Kind::forward) most = std::max(most, ++now);
      else if (a.kind != core::Action::Kind::weight_gradient) --now;
    }
    out.push_back(most);
  }
  return out;
}

// What a thread keeps between units.
struct Worker {
  // What of a table memory depends on, and one that shows the steady state where it shows, made when it is asked for.
  struct Tables {
    core::ScheduleTable memory;
    std::vector<std::int64_t> in_flight;  // most micro-batches of all stages of a rank, by rank
    std::optional<core::ScheduleTable> first;
    std::optional<simulator::TableWork> work;  // of `first` where it is the whole table
  };
  Worker(const simulator::Setting& setting, const simulator::Bench& bench) : pricer(setting, bench) {}

  // Tables are kept until there are many; those of the unit that is being searched stay.
  Tables& tables_of(const core::Schedule& schedule, std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches) {
    const auto [found, added] = tables.try_emplace({schedule.name, pp, vpp, micro_batches});
    if (added) {
      auto& made = found->second = std::make_unique<Tables>();
      made->memory = memory_table(schedule, pp, vpp, micro_batches);
      made->in_flight = most_in_flight_of_ranks(made->memory);
      for (const auto& rank : made->memory.ranks) actions += rank.size();
    }
    return *found->second;
  }
  const core::ScheduleTable& first_of(Tables& made, const core::Schedule& schedule, std::int64_t pp, std::int64_t vpp,
                                      std::int64_t micro_batches) {
    if (!made.first) {
      made.first = simulator::short_table(schedule, pp, vpp, micro_batches);
      for (const auto& rank : made.first->ranks) actions += rank.size();
    }
    return *made.first;
  }
  void forget_tables() {
    constexpr std::size_t most_actions = 8'000'000;
    if (actions < most_actions) return;
    tables.clear();
    actions = 0;
  }

  simulator::Pricer pricer;
  simulator::CellRunner runner;
  simulator::CellTimes times;
  std::vector<simulator::RankMemory> memory;
  std::map<std::tuple<std::string_view, std::int64_t, std::int64_t, std::int64_t>, std::unique_ptr<Tables>> tables;
  std::size_t actions = 0;
};

// The best `keep` so far; the last of them is what others must beat.
class Best {
 public:
  explicit Best(const SearchOptions& options)
      : keep_(options.keep), limit_(options.no_slower_than), most_(limit_.value_or(std::numeric_limits<SimTime>::max())) {}
  void add(Ranked plan) {
    if (plan.time > most_) return;
    const auto at = std::upper_bound(plans_.begin(), plans_.end(), plan);
    if (plans_.size() == keep_ && at == plans_.end()) return;
    plans_.insert(at, std::move(plan));
    if (plans_.size() > keep_) plans_.pop_back();
  }
  SimTime threshold() const {
    return plans_.size() == keep_ ? plans_.back().time : most_;
  }
  // Whether there is a plan to beat, so that how near others come to fitting does not matter.
  bool any() const { return limit_ || !plans_.empty(); }
  const std::vector<Ranked>& plans() const { return plans_; }

 private:
  std::size_t keep_;
  std::optional<SimTime> limit_;
  SimTime most_;
  std::vector<Ranked> plans_;
};

struct UnitResult {
  std::vector<Ranked> best;
  std::int64_t evaluated = 0, pruned = 0, dominated = 0, memory_rejected = 0, cells = 0;
  double nearest_short = std::numeric_limits<double>::infinity();
  std::optional<ParallelPlan> nearest;
};

// What is known of a unit before its schedules are looked at.
struct Outlook {
  SimTime plain = 0, paired = 0;  // lower bounds of the time, for schedules without and with overlapped pairs
  double over = 0.0;              // bytes by which any of its plans is over the limit at least; > 0: none fits
  SimTime least() const { return std::min(plain, paired); }
};

// Searches one unit: its schedules, layouts and recompute.
class UnitSearch {
 public:
  UnitSearch(const simulator::Setting& setting, const Space& space, const Unit& unit, const Outlook& outlook,
             const Best& so_far, const SearchOptions& options, Worker& worker)
      : setting_(setting), space_(space), unit_(unit), outlook_(outlook), options_(options), worker_(worker), best_(so_far),
        limit_(setting.cluster.gpu.memory_usable.value) {}

  UnitResult run() {
    const auto& choices = space_.choices(unit_);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      choice_ = &choices[i];
      order_ = static_cast<std::int64_t>(i) * orders_a_choice;
      schedule_ = core::find_schedule(choice_->schedule);
      // The first recompute takes least time, but where what is kept is copied to the host.
      if (!unit_.plan.offload.activations && prunes(least_time(0))) {
        result_.pruned += space_.plans_of(unit_.plan, *choice_);
        continue;
      }
      tables_ = &worker_.tables_of(*schedule_, unit_.plan.pp, choice_->vpp, unit_.plan.micro_batches());
      choose();
    }
    evaluate();
    result_.cells = worker_.runner.cells_run() - cells_before_;
    return std::move(result_);
  }

 private:
  static constexpr std::int64_t orders_a_choice = 16;

  struct Candidate {
    ParallelPlan plan;
    std::int64_t order = 0;
    SimTime bound = 0;
    Worker::Tables* tables = nullptr;
  };

  // A lower bound of the time of the choice with a recompute of the axes: the work shared out evenly; where backwards are whole
  // and in order, the way of a micro-batch to the last rank and back, and that rank's own work.
  SimTime least_time(std::size_t recompute) {
    const auto& work = work_of(recompute);
    const auto even = schedule_->pairs ? std::min(work.plain, work.paired) : work.plain;
    SimTime last = 0;
    if (choice_->is_plain) {
      const auto m = unit_.plan.micro_batches();
      last = (choice_->lead_layers + m * choice_->last_layers) * work.layer + m * work.output;
    }
    return std::max(even, last) + overhead(setting_, unit_.plan);
  }
  const simulator::Pricer::WorkBound& work_of(std::size_t recompute) {
    auto& work = work_[recompute];
    if (!work) {
      const auto& axis = space_.axes().recompute[recompute];
      auto plan = unit_.plan;
      plan.recompute = axis.kind, plan.recompute_modules = axis.modules;
      // Any number of layers, from none on.
      plan.recompute_layers = axis.kind == Recompute::full && space_.partial(unit_.plan) ? 1 : 0;
      work = worker_.pricer.work_bound(plan);
    }
    return *work;
  }

  // Whether what all layouts hold and the layers in flight are too much together, and the miss is not worth naming.
  bool cannot_fit(std::size_t recompute) {
    const auto saved = static_cast<double>(work_of(recompute).saved);
    double most = 0.0;
    for (std::size_t r = 0; r < tables_->in_flight.size(); ++r) {
      most = std::max(most, static_cast<double>(tables_->in_flight[r] * choice_->fewest_layers[r]) * saved);
    }
    const double over = outlook_.over + most;
    return over > 0.0 && (best_.any() || over >= result_.nearest_short);
  }

  bool prunes(SimTime bound) const { return options_.prune && bound > best_.threshold(); }

  // Plans that differ in recompute only: the one without it, where it fits, is faster than the others.
  void choose() {
    const auto& recompute = space_.axes().recompute;
    bool settled = false;
    for (std::size_t i = 0; i < recompute.size(); ++i) {
      const bool is_full = recompute[i].kind == Recompute::full;
      const bool partial = is_full && space_.partial(unit_.plan);
      const auto plans = 1 + (partial ? choice_->most_layers - 1 : 0);
      if (settled) {
        result_.dominated += plans;
        continue;
      }
      if (prunes(least_time(i))) {
        result_.pruned += plans;
        continue;
      }
      if (cannot_fit(i)) {
        result_.memory_rejected += plans;
        continue;
      }
      const auto plan = space_.plan_of(unit_, *choice_, recompute[i]);
      if (prunes(layout_bound(plan, partial))) {
        result_.pruned += plans;
        continue;
      }
      if (partial) {
        choose_full(plan, order_ + static_cast<std::int64_t>(i));
      } else if (fits(plan)) {
        keep(plan, order_ + static_cast<std::int64_t>(i));
        // What is recomputed is not copied to the host: there recompute may be the faster.
        settled = recompute[i].kind == Recompute::none && !unit_.plan.offload.activations;
      }
    }
  }

  // A lower bound of the time from the layout, before memory and traffic are looked at; of any number of recomputed layers where
  // they are `partial`.
  SimTime layout_bound(ParallelPlan plan, bool partial) {
    // Where what is kept is copied to the host, layers that are recomputed may take less.
    if (partial && plan.offload.activations) return 0;
    if (partial) plan.recompute = Recompute::none, plan.recompute_modules = 0, plan.recompute_layers = 0;
    return worker_.pricer.layout_bound(plan) + overhead(setting_, plan);
  }

  // Of full recompute on n layers the least n that fits; on all of them at last.
  void choose_full(const ParallelPlan& plan, std::int64_t order) {
    const auto over = over_limit(plan);
    const auto others = choice_->most_layers - 1;
    std::int64_t layers = 0;
    if (others > 0 && over && *over <= saved_by_a_last_layer(plan)) layers = least_layers(plan);
    if (layers > 0) {
      auto few = plan;
      few.recompute_layers = layers;
      keep(few, order + orders_a_choice / 2);
      result_.memory_rejected += layers - 1;
      result_.dominated += others - layers + 1;
      return;
    }
    result_.memory_rejected += others;
    if (over && *over <= 0.0) keep(plan, order);
    else ++result_.memory_rejected;
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
  std::int64_t least_layers(ParallelPlan plan) {
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
    worker_.pricer.short_lived_memory(plan, tables_->memory, worker_.memory);
    const double over = std::max(most_memory() - limit_, plan.offload.any() ? over_host_limit(plan) : -limit_);
    if (over > 0.0 && over < result_.nearest_short) {
      result_.nearest_short = over;
      result_.nearest = plan;
    }
    return over;
  }

  // Of the host memory of a node.
  double over_host_limit(const ParallelPlan& plan) const {
    std::vector<double> of_rank;
    for (const auto& rank : worker_.memory) of_rank.push_back(rank.host);
    const auto& node = setting_.cluster.node;
    return core::node_host_memory(of_rank, plan, node.gpus, setting_.framework_of(plan)) - node.host_memory.value;
  }

  double most_memory() const {
    std::int64_t most = 0;
    for (const auto& rank : worker_.memory) most = std::max(most, rank.total());
    return static_cast<double>(most);
  }

  void keep(const ParallelPlan& plan, std::int64_t order) {
    worker_.pricer.cell_times(plan, worker_.times, simulator::Pricer::Pairs::least);
    Candidate c{plan, order, worker_.pricer.lower_bound(plan, worker_.times) + overhead(setting_, plan), tables_};
    if (!prunes(c.bound)) c.bound = std::max(c.bound, table_bound(c));
    candidates_.push_back(std::move(c));
  }

  // Runs candidates from the smallest bound on; those whose bound is over the last kept plan cannot enter.
  void evaluate() {
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.bound, a.order) < std::tie(b.bound, b.order);
    });
    for (const auto& c : candidates_) {
      if (prunes(c.bound)) {
        ++result_.pruned;
        continue;
      }
      worker_.pricer.cell_times(c.plan, worker_.times, simulator::Pricer::Pairs::alone);
      const auto bound = std::max(c.bound, table_bound(c));
      if (prunes(bound)) {
        ++result_.pruned;
        continue;
      }
      ++result_.evaluated;
      // The few that are left to run need what slows their pairs, too.
      if (core::find_schedule(c.plan.schedule)->pairs) worker_.pricer.cell_times(c.plan, worker_.times);
      const Ranked ranked{c.plan, makespan(c) + overhead(setting_, c.plan), unit_.number, c.order};
      CORE_ASSERT(ranked.time >= bound);
      best_.add(ranked);
      result_.best.push_back(ranked);
    }
  }

  // A bound from the whole table, where that is what would be run.
  SimTime table_bound(const Candidate& c) {
    const auto& schedule = *core::find_schedule(c.plan.schedule);
    const auto m = c.plan.micro_batches();
    if (simulator::round_of_short_tables(schedule, c.plan.pp, m) != 0) return 0;
    const auto& table = worker_.first_of(*c.tables, schedule, c.plan.pp, c.plan.vpp, m);
    if (!c.tables->work) c.tables->work = simulator::work_of(table);
    return worker_.runner.at_least(table, *c.tables->work, worker_.times) + overhead(setting_, c.plan);
  }

  // Makespan from the shortest table that shows the period, or from the whole one, with the cell times that are priced.
  SimTime makespan(const Candidate& c) {
    const auto& schedule = *core::find_schedule(c.plan.schedule);
    const auto m = c.plan.micro_batches();
    const auto round = simulator::round_of_short_tables(schedule, c.plan.pp, m);
    const auto* table = &worker_.first_of(*c.tables, schedule, c.plan.pp, c.plan.vpp, m);
    core::ScheduleTable longer;
    while (true) {
      if (table->micro_batches == m) return worker_.runner.run(*table, worker_.times);
      if (const auto time = worker_.runner.run_periodic(*table, round, m, worker_.times)) return *time;
      const auto missing = m - table->micro_batches;
      const auto added = std::min(missing, (3 * table->micro_batches + c.plan.pp - 1) / c.plan.pp * c.plan.pp);
      longer = schedule.table(c.plan.pp, c.plan.vpp, table->micro_batches + added);
      table = &longer;
    }
  }

  const simulator::Setting& setting_;
  const Space& space_;
  const Unit& unit_;
  const Outlook& outlook_;
  const SearchOptions& options_;
  Worker& worker_;
  Best best_;
  double limit_;
  const Choice* choice_ = nullptr;
  const core::Schedule* schedule_ = nullptr;
  Worker::Tables* tables_ = nullptr;
  std::int64_t order_ = 0;
  std::array<std::optional<simulator::Pricer::WorkBound>, orders_a_choice / 2> work_;  // by recompute
  std::vector<Candidate> candidates_;
  UnitResult result_;
  std::int64_t cells_before_ = worker_.runner.cells_run();
};

// Runs units in rounds of a fixed size: what a unit must beat is fixed when its round begins, so that the result (and the counts)
// do not depend on threads. Samples of all units come first, so that the rest has good plans to beat; each from the smallest
// bound on. When the next bound is over the last kept plan, all that is left of the sample is pruned.
class Search {
 public:
  Search(const simulator::Setting& setting, const simulator::Bench& bench, const Space& space, const SearchOptions& options)
      : setting_(setting), space_(space), options_(options), best_(options),
        workers_([&setting, &bench] { return Worker(setting, bench); }) {}

  SearchResult run() {
    look_out();
    sort();
    std::size_t next = 0;
    for (const auto end : sample_ends_) {
      while (next < end && !stopped_) {
        if (options_.prune && outlooks_[order_[next]].least() > best_.threshold()) break;
        next = run_round(next, end);
      }
      if (stopped_) break;
      next = leave(next, end);
    }
    finish_rest(next);
    out_.searched = space_.searched();
    out_.best = best_.plans();
    if (out_.memory_rejected > 0 && nearest_) {
      out_.rejected.push_back({"memory", out_.memory_rejected, core::to_text(*nearest_), nearest_short_ / core::gibibyte});
    }
    for (const auto& [reason, entry] : space_.illegal()) out_.rejected.push_back({reason, entry.count, entry.example, 0.0});
    return std::move(out_);
  }

 private:
  static constexpr std::size_t units_a_round = 16, units_a_look = 64;

  void look_out() {
    const auto& units = space_.units();
    outlooks_.resize(units.size());
    parallel_for((units.size() + units_a_look - 1) / units_a_look, [&](std::size_t chunk) {
      auto& worker = workers_.local();
      const auto end = std::min(units.size(), (chunk + 1) * units_a_look);
      worker.pricer.forget_bodies();
      for (auto i = chunk * units_a_look; i < end; ++i) outlooks_[i] = outlook_of(units[i], worker);
    });
  }
  Outlook outlook_of(const Unit& unit, Worker& worker) const {
    Outlook out;
    out.over = worker.pricer.resident_at_least(unit.plan) - setting_.cluster.gpu.memory_usable.value;
    if (out.over > 0.0) return out;
    // The first recompute of the axes takes least time, but where what is kept is copied to the host.
    const auto& recompute = space_.axes().recompute;
    const auto tried = unit.plan.offload.activations ? recompute.size() : 1;
    out.plain = out.paired = std::numeric_limits<SimTime>::max();
    for (std::size_t i = 0; i < tried; ++i) {
      auto plan = unit.plan;
      plan.recompute = recompute[i].kind;
      plan.recompute_modules = recompute[i].modules;
      plan.recompute_layers = plan.recompute == Recompute::full ? 1 : 0;  // any number of layers
      const auto bound = worker.pricer.work_bound(plan);
      out.plain = std::min(out.plain, bound.plain + overhead(setting_, plan));
      out.paired = std::min(out.paired, bound.paired + overhead(setting_, plan));
    }
    return out;
  }
  // Units that may fit by their bound; then those that cannot, by what they lack.
  void sort() {
    const auto& choices = [&](std::size_t i) -> const auto& { return space_.choices(space_.units()[i]); };
    for (std::size_t i = 0; i < outlooks_.size(); ++i) {
      order_.push_back(i);
      const bool pairs = std::any_of(choices(i).begin(), choices(i).end(), [](const Choice& c) {
        return core::find_schedule(c.schedule)->pairs;
      });
      if (!pairs) outlooks_[i].paired = outlooks_[i].plain;
    }
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      const auto &x = outlooks_[a], &y = outlooks_[b];
      return std::make_tuple(std::max(0.0, x.over), x.least(), a) < std::make_tuple(std::max(0.0, y.over), y.least(), b);
    });
    const auto may_fit = std::find_if(order_.begin(), order_.end(), [&](std::size_t i) { return outlooks_[i].over > 0.0; });
    sample(static_cast<std::size_t>(may_fit - order_.begin()));
  }
  // Moves every so-manieth of the first units to the front, then of the others fewer apart, then all.
  void sample(std::size_t units) {
    std::vector<std::size_t> left(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(units)), others;
    std::size_t end = 0;
    for (const std::size_t apart : {256, 16, 1}) {
      others.clear();
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (i % apart == 0) order_[end++] = left[i];
        else others.push_back(left[i]);
      }
      left.swap(others);
      sample_ends_.push_back(end);
    }
  }
  std::size_t run_round(std::size_t begin, std::size_t last) {
    const auto end = std::min(last, begin + units_a_round);
    std::vector<UnitResult> results(end - begin);
    parallel_for(results.size(), [&](std::size_t i) {
      const auto unit = order_[begin + i];
      workers_.local().forget_tables();
      workers_.local().pricer.forget_bodies();
      results[i] = UnitSearch(setting_, space_, space_.units()[unit], outlooks_[unit], best_, options_, workers_.local()).run();
    });
    for (auto& r : results) merge(r);
    if (options_.progress) options_.progress(out_.evaluated + out_.pruned + out_.memory_rejected + out_.dominated);
    stopped_ = options_.stop && options_.stop();
    return end;
  }
  // Units that were not looked into: their bound is too high, or none of their plans fits. Where nothing has fitted, the nearest
  // misses are looked into all the same.
  void finish_rest(std::size_t next) {
    while (next < order_.size() && !stopped_ && !best_.any() && outlooks_[order_[next]].over < nearest_short_) {
      next = run_round(next, order_.size());
    }
    leave(next, order_.size());
  }
  // Counts units that are not looked into.
  std::size_t leave(std::size_t next, std::size_t end) {
    for (; next < end; ++next) {
      const auto plans = space_.plans_of(space_.units()[order_[next]]);
      (outlooks_[order_[next]].over > 0.0 ? out_.memory_rejected : out_.pruned) += plans;
    }
    return next;
  }

  void merge(UnitResult& r) {
    for (auto& plan : r.best) best_.add(std::move(plan));
    out_.evaluated += r.evaluated;
    out_.pruned += r.pruned;
    out_.dominated += r.dominated;
    out_.memory_rejected += r.memory_rejected;
    out_.cells += r.cells;
    if (r.nearest && r.nearest_short < nearest_short_) nearest_short_ = r.nearest_short, nearest_ = r.nearest;
  }

  const simulator::Setting& setting_;
  const Space& space_;
  const SearchOptions& options_;
  Best best_;
  tbb::enumerable_thread_specific<Worker> workers_;
  std::vector<Outlook> outlooks_;   // by unit
  std::vector<std::size_t> order_;  // units: samples, each the most promising first, then those that cannot fit
  std::vector<std::size_t> sample_ends_;
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
  const Space space(question, axes);
  return Search(setting, bench, space, options).run();
}

}  // namespace planner

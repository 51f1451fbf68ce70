#include "planner/calibrate/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/hardware/figures.h"
#include "fitting/two_level.h"
#include "planner/parallel.h"
#include "simulator/check/predict.h"

namespace planner {

namespace {

using simulator::RunPattern;
using simulator::Uncertainty;
using Rows = std::vector<const ResidualRow*>;

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

double number_of(const core::Document& root, std::string_view key, double low, double high) {
  const auto& entry = root.at(key);
  const double value = entry.at("value").as_real();
  if (value < low || value > high) entry.at("value").complain(fmt::format("a number from {} to {}", low, high));
  entry.at("source").as_text();
  entry.reject_unknown({"value", "source"});
  return value;
}

std::map<std::string, Rows> by_source(const Rows& rows) {
  std::map<std::string, Rows> sources;
  for (const auto* row : rows) sources[row->source].push_back(row);
  return sources;
}

Rows those_of(const Rows& rows, const RunPattern& pattern) {
  Rows out;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(out), [&](const auto* row) { return pattern.holds(row->runs); });
  return out;
}

// Of n rows of a source.
double source_weight(const std::string& source, std::size_t n, const CalibrationSpec& spec) {
  const auto factor = spec.source_weights.find(source);
  return std::min(std::sqrt(static_cast<double>(n)), spec.source_most) *
         (factor == spec.source_weights.end() ? 1.0 : factor->second);
}

std::vector<fitting::ValueGroup> groups_of(const Rows& rows, const CalibrationSpec& spec) {
  std::vector<fitting::ValueGroup> groups;
  for (const auto& [source, members] : by_source(rows)) {
    auto& group = groups.emplace_back();
    for (const auto* row : members) {
      group.values.push_back(row->residual);
      group.weights.push_back(row->weight);
    }
    group.weight = source_weight(source, members.size(), spec);
  }
  return groups;
}

// At most so many rows, evenly spread.
Rows thinned(const Rows& rows, std::size_t most) {
  if (rows.size() <= most) return rows;
  Rows out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(rows[i * rows.size() / most]);
  return out;
}

// What the run that calibrates differs in from the run that is predicted.
struct Difference {
  bool gpu = false, experts = false, other = false;
  bool none() const { return !gpu && !experts && !other; }
};
Difference difference_of(const ResidualRow& a, const ResidualRow& b) {
  return {a.gpu != b.gpu, a.runs.experts != b.runs.experts, a.runs.software != b.runs.software};
}

// |difference| of the residuals of pairs of runs of one source: by how much one run is off when the other has calibrated it.
template <class Wanted>
std::vector<double> pair_errors(const Rows& rows, std::size_t most, const Wanted& wanted) {
  std::vector<double> errors;
  const auto few = thinned(rows, most);
  for (std::size_t i = 0; i < few.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (few[i]->configuration != few[j]->configuration && wanted(difference_of(*few[i], *few[j])))
        errors.push_back(std::abs(few[i]->residual - few[j]->residual));
    }
  }
  return errors;
}

// What the share of those pairs lies below, and how many sources of equal weight would tell as much; nothing without pairs.
struct PairSpread {
  double half = 0.0, sources = 0.0;
};
template <class Wanted>
std::optional<PairSpread> pair_spread(const Rows& rows,
                                      const IntervalRules& rules,
                                      const CalibrationSpec& spec,
                                      const Wanted& wanted) {
  std::vector<double> errors, weights;
  double sum = 0.0, squares = 0.0;
  for (const auto& [source, members] : by_source(rows)) {
    const auto of_source = pair_errors(members, rules.pair_rows, wanted);
    if (of_source.empty()) continue;
    const double weight = source_weight(source, members.size(), spec);
    sum += weight, squares += weight * weight;
    errors.insert(errors.end(), of_source.begin(), of_source.end());
    weights.insert(weights.end(), of_source.size(), weight / static_cast<double>(of_source.size()));
  }
  if (errors.empty()) return std::nullopt;
  return PairSpread{fitting::weighted_quantile(std::move(errors), std::move(weights), rules.share), sum * sum / squares};
}

// Drawn to the wider class as its interval is: by the logarithm, since one source that spreads widely must not rule.
double drawn(const PairSpread& spread, double wider, double prior_sources) {
  return std::exp((spread.sources * std::log(spread.half) + prior_sources * std::log(wider)) /
                  (spread.sources + prior_sources));
}

// All patterns of the rows, the wider before the narrower.
std::vector<RunPattern> patterns_in(const Rows& rows) {
  std::vector<std::vector<RunPattern>> levels;
  for (const auto* row : rows) {
    const auto patterns = simulator::patterns_of(row->runs);
    levels.resize(patterns.size());
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      auto& level = levels[i];
      if (std::find(level.begin(), level.end(), patterns[i]) == level.end()) level.push_back(patterns[i]);
    }
  }
  std::vector<RunPattern> all;
  for (auto& level : levels) {
    std::sort(level.begin(), level.end(), [](const auto& a, const auto& b) { return a.text() < b.text(); });
    all.insert(all.end(), level.begin(), level.end());
  }
  return all;
}

// Of classes that are made, the narrowest that holds all that a pattern holds.
template <class T>
const T* wider_of(const std::vector<std::pair<RunPattern, T>>& made, const RunPattern& pattern) {
  const auto open = [](const auto& wide, const auto& narrow) { return !wide || wide == narrow; };
  for (auto at = made.rbegin(); at != made.rend(); ++at) {
    const auto& p = at->first;
    if (open(p.experts, pattern.experts) && open(p.software, pattern.software) && open(p.own_curves, pattern.own_curves))
      return &at->second;
  }
  return nullptr;
}

struct Made {
  fitting::TwoLevel spread;
  double after_one_run = 0.0;
};

Made made_of(const Rows& members, const Made* wider, const IntervalRules& rules, const CalibrationSpec& spec) {
  const auto groups = groups_of(members, spec);
  if (wider == nullptr && groups.size() < 2) throw core::InputError("intervals take rows of two sources or more");
  std::optional<fitting::TwoLevelPrior> prior;
  if (wider != nullptr) prior = fitting::TwoLevelPrior{wider->spread, rules.prior_sources};
  Made made{fitting::two_level(groups, rules.degrees, prior), wider == nullptr ? 0.0 : wider->after_one_run};
  if (const auto pairs = pair_spread(members, rules, spec, [](const Difference& d) { return d.none(); })) {
    made.after_one_run = wider == nullptr ? pairs->half : drawn(*pairs, wider->after_one_run, rules.prior_sources);
  }
  return made;
}

// An interval holds its prediction: the middle of a class may be beyond it, and is no surer than that.
simulator::ClassBand band_of(const RunPattern& pattern, const Rows& members, const Made& made, const IntervalRules& rules) {
  const auto interval = fitting::interval_of_new_group(made.spread, rules.degrees, rules.share);
  return {pattern,
          static_cast<std::int64_t>(members.size()),
          static_cast<std::int64_t>(by_source(members).size()),
          std::min(1.0, rounded(std::exp(interval.low))),
          std::max(1.0, rounded(std::exp(interval.high))),
          rounded(made.after_one_run)};
}

std::map<std::string, double> after_other_runs(const Rows& rows, const IntervalRules& rules, const CalibrationSpec& spec) {
  std::map<std::string, double> out;
  const auto add = [&](const char* what, const auto& wanted) {
    if (const auto pairs = pair_spread(rows, rules, spec, wanted)) out.emplace(what, rounded(pairs->half));
  };
  add("gpu", [](const Difference& d) { return d.gpu && !d.experts && !d.other; });
  add("experts", [](const Difference& d) { return d.experts && !d.gpu && !d.other; });
  return out;
}

Uncertainty intervals_from(const Rows& rows, const IntervalRules& rules, const CalibrationSpec& spec) {
  Uncertainty u;
  u.share = rules.share;
  u.unmeasured_widening = rules.unmeasured_widening;
  u.unmeasured_source = rules.unmeasured_source;
  u.software = rules.software;
  std::set<std::string> architectures;
  for (const auto* row : rows) architectures.insert(row->architecture);
  u.architectures.assign(architectures.begin(), architectures.end());
  std::vector<std::pair<RunPattern, Made>> made;
  for (const auto& pattern : patterns_in(rows)) {
    const auto members = those_of(rows, pattern);
    const auto now = made_of(members, wider_of(made, pattern), rules, spec);
    u.classes.push_back(band_of(pattern, members, now, rules));
    made.emplace_back(pattern, now);
  }
  u.after_other_run = after_other_runs(rows, rules, spec);
  return u;
}

const std::string& name_of(const ResidualRow& row, LeftOut what) {
  return what == LeftOut::source ? row.source : row.architecture;
}

bool is_inside(const ResidualRow& row, const Uncertainty& u) {
  const auto band = simulator::band_of(u, row.runs, row.architecture);
  const double ratio = std::exp(row.residual);
  return band.low <= ratio && ratio <= band.high;
}

void count_pairs(const Rows& members, const Uncertainty& u, Coverage& out) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto &a = *members[i], &b = *members[j];
      if (a.configuration == b.configuration || !difference_of(a, b).none()) continue;
      ++out.pairs;
      out.errors_after.push_back(std::abs(std::expm1(b.residual - a.residual)));
      out.pairs_covered += std::abs(a.residual - b.residual) <= u.narrowest(a.runs).after_one_run;
    }
  }
}

void count(const Rows& inside, const Uncertainty& u, const IntervalRules& rules, const CalibrationSpec& spec, Coverage& out) {
  for (const auto& [source, members] : by_source(inside)) {
    std::size_t covered = 0;
    for (const auto* row : members) {
      covered += is_inside(*row, u);
      out.errors.push_back(std::abs(std::expm1(-row->residual)));
    }
    out.rows += members.size(), out.covered += covered;
    const double weight = source_weight(source, members.size(), spec);
    out.weight += weight;
    out.covered_weight += weight * static_cast<double>(covered) / static_cast<double>(members.size());
    count_pairs(thinned(members, rules.pair_rows), u, out);
  }
}

Rows pointers(const std::vector<ResidualRow>& rows) {
  Rows out;
  for (const auto& row : rows) out.push_back(&row);
  return out;
}

}  // namespace

IntervalRules read_interval_rules(const std::filesystem::path& file) {
  const auto root = core::Document::read_json_file(file);
  IntervalRules rules;
  root.at("title").as_text();
  rules.share = number_of(root, "share", 0.5, 0.99);
  rules.degrees = number_of(root, "degrees", 1.0, 1e6);
  rules.prior_sources = number_of(root, "prior_sources", 0.0, 100.0);
  rules.pair_rows = static_cast<std::size_t>(number_of(root, "pair_rows", 2.0, 1000.0));
  core::Figures::Sources sources;
  rules.unmeasured_widening = core::Figures(root, sources).positive("unmeasured_widening");
  rules.unmeasured_source = sources.front().second.source;
  for (const auto& entry : root.at("software").as_list()) rules.software.push_back(simulator::software_group_of(entry));
  root.reject_unknown({"title", "share", "degrees", "prior_sources", "pair_rows", "unmeasured_widening", "software"});
  return rules;
}

std::vector<ResidualRow> residual_rows(const CalibrationRows& rows, const IntervalRules& rules) {
  std::vector<ResidualRow> out(rows.rows.size());
  parallel_for(rows.rows.size(), [&](std::size_t i) {
    const auto& row = rows.rows[i];
    const auto& setting = row.run.setting;
    const simulator::Bench bench(setting);
    const auto& gpu = setting.cluster.gpu;
    out[i] = {row.id,
              row.source,
              gpu.name,
              gpu.arch,
              row.configuration,
              simulator::class_of(setting, row.run.plan, bench.curves(), rules.software),
              std::log(row.measured_s / simulator::predict(row.run, bench).step_time_s),
              row.weight};
  });
  return out;
}

Uncertainty intervals_of(const std::vector<ResidualRow>& rows, const IntervalRules& rules, const CalibrationSpec& spec) {
  return intervals_from(pointers(rows), rules, spec);
}

std::vector<Coverage> coverage_left_out(const std::vector<ResidualRow>& rows,
                                        const IntervalRules& rules,
                                        const CalibrationSpec& spec,
                                        LeftOut what) {
  std::set<std::string> names;
  for (const auto& row : rows) names.insert(name_of(row, what));
  std::vector<Coverage> out;
  Coverage all;
  all.left_out = "all";
  for (const auto& name : names) {
    Rows inside, outside;
    for (const auto& row : rows) (name_of(row, what) == name ? inside : outside).push_back(&row);
    const auto u = intervals_from(outside, rules, spec);
    auto& of_name = out.emplace_back();
    of_name.left_out = name;
    count(inside, u, rules, spec, of_name);
    all.rows += of_name.rows, all.covered += of_name.covered;
    all.pairs += of_name.pairs, all.pairs_covered += of_name.pairs_covered;
    all.weight += of_name.weight, all.covered_weight += of_name.covered_weight;
    all.errors.insert(all.errors.end(), of_name.errors.begin(), of_name.errors.end());
    all.errors_after.insert(all.errors_after.end(), of_name.errors_after.begin(), of_name.errors_after.end());
  }
  out.push_back(all);
  return out;
}

}  // namespace planner

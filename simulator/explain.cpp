#include "simulator/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/graph/launches.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"
#include "simulator/report.h"

namespace simulator {

namespace {

using core::OpKind;
using core::OpSpec;

std::vector<std::string> names_in(const core::StepGraph& graph) {
  std::set<std::string> names;
  for (const auto& spec : graph.specs) {
    if (spec.kind != OpKind::cell) names.insert(spec.name.str());
  }
  return {names.begin(), names.end()};
}

// The one name that is meant.
std::string name_meant(const std::vector<std::string>& names, std::string_view asked) {
  if (std::find(names.begin(), names.end(), asked) != names.end()) return std::string(asked);
  std::vector<std::string> with;
  std::copy_if(names.begin(), names.end(), std::back_inserter(with),
               [&](const std::string& name) { return name.find(asked) != std::string::npos; });
  if (with.size() == 1) return with.front();
  const auto said = core::printable(asked);
  if (!with.empty())
    throw core::InputError(fmt::format("--explain {}: stands for {}; expected one of them", said, fmt::join(with, ", ")));
  if (const auto near = core::nearest_name(std::string(asked), names))
    throw core::InputError(fmt::format("--explain {}: no such operation; did you mean {}?", said, *near));
  throw core::InputError(fmt::format("--explain {}: no such operation, expected one of {}", said, fmt::join(names, ", ")));
}

std::string shape_of(const OpSpec& spec) {
  std::string out;
  switch (spec.kind) {
    case OpKind::gemm:
      out = fmt::format(
          "m {}, n {}, k {}{} in {}", spec.m, spec.n, spec.k,
          spec.batch > 1 ? fmt::format(", {} {}", spec.batch, spec.grouped ? "experts in one kernel" : "times") : "",
          core::name_of(spec.format));
      break;
    case OpKind::attention:
      out = fmt::format("{} queries, {} keys, head size {}{}, {} sequences x heads, {}{} in {}", spec.m, spec.n, spec.k,
                        spec.v_dim > 0 ? fmt::format(" (values {})", spec.v_dim) : "", spec.batch, core::name_of(spec.kernel),
                        spec.window > 0 ? fmt::format(", window {}", spec.window)
                        : spec.causal   ? ", causal"
                                        : "",
                        core::name_of(spec.format));
      break;
    case OpKind::optimizer:
    case OpKind::host_optimizer:
      out = fmt::format("{} parameters", spec.m);
      break;
    case OpKind::host:
      return fmt::format("waits for {} launches", spec.m);
    default:
      out = fmt::format("{} MB", three_digits(spec.bytes.value / 1e6));
      break;
  }
  if (spec.kind == OpKind::gemm || spec.kind == OpKind::optimizer || is_collective(spec.kind) || is_copy(spec.kind)) return out;
  return out + (spec.direction == core::Direction::forward ? ", forward" : ", backward");
}

std::string curve_files(const core::Gpu& gpu) {
  std::vector<std::string> files;
  for (const auto& name : {gpu.arch, "collectives-" + gpu.arch, gpu.name}) {
    if (std::filesystem::exists(core::data_dir() / "curves" / (name + ".json"))) files.push_back("curves/" + name);
  }
  return fmt::format("{}", fmt::join(files, ", "));
}

void take_figures(const Recording& recording, const Curves& curves, Explanation& e) {
  for (const auto& key : recording.keys()) {
    const bool there = std::any_of(e.figures.begin(), e.figures.end(), [&](const UsedFigure& f) { return f.key == key; });
    if (!there) e.figures.push_back({key, curves.source_of(key), curves.checked_of(key), curves.values_of(key)});
  }
}

void explain_collective(const OpSpec& spec, const core::StepGraph& graph, const Bench& bench, Explanation& e) {
  const auto& group = graph.groups[static_cast<std::size_t>(spec.group)];
  const auto links = links_of(group, bench.topology());
  const auto between = fmt::format(", {} GB/s a group between domains", three_digits(links.inter.value / 1e9));
  e.links = fmt::format("{}: {}; {} GB/s a member inside{}; the narrowest is the {}", group.name, links.says,
                        three_digits(links.intra.value / 1e9), links.domains > 1 ? between : "", links.bottleneck);
  for (const auto* algorithm : collectives::all()) {
    const Recording recording;
    const auto cost = algorithm->time(collective_of(spec), links, bench.curves());
    if (!cost) continue;
    e.algorithms_s.emplace_back(algorithm->name, cost->time.value);
    if (!e.algorithm.empty() && cost->time.value >= e.alone_s) continue;
    e.algorithm = algorithm->name;
    e.alone_s = cost->time.value;
    e.steps = recording.steps();
    e.figures.clear();
    take_figures(recording, bench.curves(), e);
  }
}

void explain_kernel(const OpSpec& spec, const Bench& bench, Explanation& e) {
  const Recording recording;
  e.alone_s = kernel_time(spec, bench.curves()).time.value;
  e.steps = recording.steps();
  take_figures(recording, bench.curves(), e);
}

// A wait lasts as long as the host's launches take beyond the kernels of its body.
void explain_host(const OpSpec& spec, const core::Framework& framework, double wait_s, Explanation& e) {
  const double host = static_cast<double>(spec.m) * framework.host_per_launch.value;
  e.launches = spec.m, e.host_s = host;
  e.steps = {{"launches of the body", static_cast<double>(spec.m), ""},
             {"host time of a launch", 1e6 * framework.host_per_launch.value, "us"},
             {"the host takes for all", 1e6 * host, "us"},
             {"left to wait when kernels and collectives are done", 1e6 * wait_s, "us"}};
  e.alone_s = wait_s;
}

// Launches that an operation of this shape stands for.
std::int64_t launches_in(const core::StepWork& work, const OpSpec& spec) {
  for (const auto& body : work.bodies) {
    for (const auto* ops : {&body.forward, &body.backward}) {
      const auto found = std::find_if(ops->begin(), ops->end(), [&](const core::BodyOp& op) {
        return op.spec.name == spec.name && op.spec.direction == spec.direction && op.spec.kind == spec.kind;
      });
      if (found != ops->end()) return core::launches_of(work.framework.launches, *found, work.plan.graphs);
    }
  }
  return 0;
}

Explanation explanation_of(
    const SimulatedStep& step, const Setting& setting, const Bench& bench, std::size_t index, const SpecTime& time) {
  const auto& spec = step.graph.specs[index];
  const auto& price = step.prices[index];
  Explanation e;
  e.name = spec.name.str(), e.kind = core::name_of(spec.kind), e.shape = shape_of(spec);
  e.flops = spec.flops.value, e.bytes = spec.bytes.value;
  e.origin = price.origin;
  e.curves = curve_files(setting.cluster.gpu);
  e.price_s = core::to_seconds(price.duration).value;
  if (spec.kind == OpKind::host) {
    explain_host(spec, step.work.framework, e.price_s, e);
  } else {
    if (is_collective(spec.kind))
      explain_collective(spec, step.graph, bench, e);
    else
      explain_kernel(spec, bench, e);
    const Recording recording;
    e.factors = factors_of(spec, bench.machine());
    take_figures(recording, bench.curves(), e);
    e.launches = launches_in(step.work, spec);
    e.host_s = static_cast<double>(e.launches) * step.work.framework.host_per_launch.value;
  }
  e.count = time.count;
  if (time.count > 0) e.in_step_s = core::to_seconds(time.spent).value / static_cast<double>(time.count);
  return e;
}

std::string figure_text(const UsedFigure& f) {
  return fmt::format("    {} = {:.4g} ({}): {}\n", f.key, fmt::join(f.values, " "), f.checked, f.source);
}

// "12.1 us x 1.01 slowest GPU / 0.93 sustained + 1.2 us gap".
std::string factors_text(const Explanation& e) {
  const auto& f = e.factors;
  std::string out = seconds_text(e.alone_s);
  const auto times = [&](double factor, const char* why) {
    if (factor != 1.0) out += fmt::format(" x {:.4g} {}", factor, why);
  };
  times(f.slowest, "for the slowest GPU");
  times(f.slowed, "beside what it overlaps");
  times(f.held_back, "under the power limit");
  if (f.gap.value > 0.0) out += fmt::format(" + {} before the next kernel", seconds_text(f.gap.value));
  if (f.corrected != 1.0) out = fmt::format("({}) x {:.4g} by calibration", out, f.corrected);
  return out;
}

std::string step_text(const PriceStep& s) {
  return fmt::format("    {} {:.4g}{}\n", s.what, s.value, s.unit.empty() ? "" : " " + s.unit);
}

}  // namespace

std::vector<Explanation> explain(const SimulatedStep& step,
                                 const Setting& setting,
                                 const Bench& bench,
                                 std::string_view asked) {
  const auto name = name_meant(names_in(step.graph), asked);
  const Ran ran{step.graph, step.timeline, step.prices};
  const auto times = time_by_spec(ran, last_rank(ran));
  std::vector<Explanation> out;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto& spec = step.graph.specs[i];
    if (spec.kind != OpKind::cell && spec.name == name) out.push_back(explanation_of(step, setting, bench, i, times[i]));
  }
  return out;
}

std::string explanation_text(const Explanation& e) {
  std::string out = fmt::format("{}: {}, {}\n", e.name, e.kind, e.shape);
  if (e.flops > 0.0) out += fmt::format("  work {} GFLOP", three_digits(e.flops / 1e9));
  if (e.bytes > 0.0) out += fmt::format("{} {} MB", e.flops > 0.0 ? "," : "  work", three_digits(e.bytes / 1e6));
  if (e.flops > 0.0 || e.bytes > 0.0) out += '\n';
  if (!e.links.empty()) out += fmt::format("  links {}\n", e.links);
  if (!e.algorithm.empty()) {
    out += fmt::format("  algorithm {}", e.algorithm);
    for (const auto& [name, seconds] : e.algorithms_s) {
      if (name != e.algorithm) out += fmt::format("; {} would take {}", name, seconds_text(seconds));
    }
    out += '\n';
  }
  out += fmt::format("  alone {}, made of\n", seconds_text(e.alone_s));
  for (const auto& s : e.steps) out += step_text(s);
  if (e.kind != "host") out += fmt::format("  priced {} = {}\n", seconds_text(e.price_s), factors_text(e));
  if (e.count > 0) {
    out += fmt::format("  in the step {} times on the rank that ends last, {} each", e.count, seconds_text(e.in_step_s));
    if (e.in_step_s > 1.0005 * e.price_s && e.price_s > 0.0)
      out += fmt::format(" ({:.4g} times as long beside what overlaps it)", e.in_step_s / e.price_s);
    out += '\n';
  } else {
    out += "  not on the rank that ends last\n";
  }
  if (e.launches > 0 && e.kind != "host")
    out += fmt::format("  host {} launch{}, {}\n", e.launches, e.launches > 1 ? "es" : "", seconds_text(e.host_s));
  if (!e.figures.empty()) out += fmt::format("  rests on {} figures of {}\n", name_of(e.origin), e.curves);
  for (const auto& f : e.figures) out += figure_text(f);
  return out;
}

void write_explanation(core::JsonWriter& json, const Explanation& e) {
  json.begin_object().member("name", e.name).member("kind", e.kind).member("shape", e.shape);
  json.member("flops", e.flops).member("bytes", e.bytes).member("origin", name_of(e.origin));
  json.member("links", e.links).member("algorithm", e.algorithm);
  json.key("algorithms_s").begin_object();
  for (const auto& [name, seconds] : e.algorithms_s) json.member(name, seconds);
  json.end_object().key("steps").begin_list();
  for (const auto& s : e.steps)
    json.begin_object().member("what", s.what).member("value", s.value).member("unit", s.unit).end_object();
  json.end_list().member("alone_s", e.alone_s);
  json.key("factors")
      .begin_object()
      .member("slowest_gpu", e.factors.slowest)
      .member("beside", e.factors.slowed)
      .member("power_limit", e.factors.held_back)
      .member("calibration", e.factors.corrected)
      .member("gap_s", e.factors.gap.value)
      .end_object();
  json.member("price_s", e.price_s).member("count", e.count).member("in_step_s", e.in_step_s);
  json.member("launches", e.launches).member("host_s", e.host_s).member("curves", e.curves);
  json.key("figures").begin_list();
  for (const auto& f : e.figures) {
    json.begin_object().member("key", f.key).key("values").begin_list();
    for (const double value : f.values) json.value(value);
    json.end_list().member("checked", f.checked).member("source", f.source).end_object();
  }
  json.end_list().end_object();
}

}  // namespace simulator

#include "planner/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/parallel.h"
#include "simulator/version.h"

namespace planner {

namespace {

using simulator::StepReport;

std::string recompute_of(const core::ParallelPlan& p) {
  if (p.recompute == core::Recompute::full && p.recompute_layers > 0) return fmt::format("full:{}", p.recompute_layers);
  return std::string(core::name_of(p.recompute));
}

std::string layout_of(const core::ParallelPlan& p) {
  return p.layout == core::Layout::even ? "even" : p.layout == core::Layout::slots ? "slots" : "given";
}

std::string pipeline_of(const core::ParallelPlan& p) {
  return p.vpp > 1 ? fmt::format("{}x{}", p.pp, p.vpp) : fmt::format("{}", p.pp);
}

std::string counts_text(const Answer& a, const ReportOptions& options) {
  const auto& s = a.search;
  std::string out = fmt::format(
      "{} legal plans: {} run by the engine, {} pruned by an exact bound, {} that only recompute more than one that fits, {} "
      "out of memory",
      s.searched, s.evaluated, s.pruned, s.dominated, s.memory_rejected);
  if (!options.reproducible) out += fmt::format("; {:.2f} s", a.elapsed_s);
  return out + '\n';
}

std::string rejections_text(const SearchResult& s) {
  std::string out;
  for (const auto& r : s.rejected) {
    if (r.reason == "memory") {
      out += fmt::format("  {:>9}  out of memory; nearest, {:.1f} GiB short: {}\n", r.count, r.short_GiB, r.nearest);
    } else {
      out += fmt::format("  {:>9}  {}\n", r.count, r.reason);
    }
  }
  return out.empty() ? out : "Rejected combinations\n" + out;
}

std::string head_text(const simulator::Setting& setting, const ReportOptions& o) {
  const auto count = core::count_parameters(setting.model);
  return fmt::format("{} ({} B parameters) on {} x {} ({} a node), sequence {}, global batch {}, {}, {}, {}\n",
                     setting.model.name, simulator::three_digits(static_cast<double>(count.total) / 1e9), o.request.gpus,
                     setting.cluster.gpu.name, setting.cluster.node.gpus, setting.seq, o.request.global_batch,
                     setting.recipe.name, o.request.attention, o.request.framework);
}

std::string plan_row(std::size_t rank, const StepReport& r) {
  const auto& p = r.plan;
  return fmt::format("{:>4} {:>3} {:>2} {:>3} {:>6} {:>3} {:>5} {:>4} {:>3} {:>5} {:<15} {:<9} {:<6} {:>9} {:>6} {:>8} {:>8} {:>7.1f} {:<10}",
                     rank, p.tp, p.sp ? "sp" : "-", p.cp, pipeline_of(p), p.ep, p.dp, p.zero, p.micro_batch, p.micro_batches(),
                     p.schedule, recompute_of(p), layout_of(p), simulator::seconds_text(r.step_time_s),
                     fmt::format("{:.1f}%", 100.0 * r.mfu), simulator::three_digits(r.tflops_per_gpu),
                     simulator::three_digits(r.tokens_per_s_per_gpu), r.peak_memory_GiB, simulator::name_of(r.fits));
}

std::string plan_rows(const Answer& a) {
  std::string out = fmt::format("{:>4} {:>3} {:>2} {:>3} {:>6} {:>3} {:>5} {:>4} {:>3} {:>5} {:<15} {:<9} {:<6} {:>9} {:>6} {:>8} {:>8} {:>7} {:<10} {}\n",
                                "rank", "tp", "sp", "cp", "pp", "ep", "dp", "zero", "mb", "m", "schedule", "recompute", "layers",
                                "step", "MFU", "TFLOP/s", "tok/s/GPU", "GiB", "fits", "behind the first");
  for (std::size_t i = 0; i < a.plans.size(); ++i) {
    out += plan_row(i + 1, a.plans[i]);
    if (i > 0) out += ' ' + why_slower(a.plans.front(), a.plans[i]);
    out += '\n';
  }
  return out;
}

}  // namespace

namespace {

// Plans that communicate with every micro-batch are written out operation by operation at mixed grain. Where that is more
// than this many operations, cell grain answers: it is within 1.5 % of it (tests/simulator/grain_test.cpp).
constexpr std::int64_t most_operations = 150'000;

core::Grain grain_for(const simulator::Setting& setting, const core::ParallelPlan& plan) {
  constexpr std::int64_t operations_a_layer = 32;  // forward and backward together
  const bool every_micro_batch = plan.zero >= 2 && plan.replicas() > 1;
  const auto operations = plan.micro_batches() * setting.model.layers() * operations_a_layer;
  return every_micro_batch && operations > most_operations ? core::Grain::cell : core::Grain::mixed;
}

}  // namespace

std::vector<StepReport> refine(const simulator::Setting& setting,
                               const simulator::Bench& bench,
                               const std::vector<Ranked>& best,
                               std::size_t top) {
  std::vector<StepReport> reports(best.size());
  parallel_for(best.size(), [&](std::size_t i) {
    const auto grain = grain_for(setting, best[i].plan);
    reports[i] =
        simulator::simulate_step(setting, bench, best[i].plan, grain, core::Fold::yes, simulator::Detail::answer).report;
  });
  std::stable_sort(reports.begin(), reports.end(),
                   [](const StepReport& a, const StepReport& b) { return a.step_time_s < b.step_time_s; });
  if (reports.size() > top) reports.resize(top);
  return reports;
}

std::string why_slower(const StepReport& first, const StepReport& other) {
  const double total = other.step_time_s - first.step_time_s;
  std::vector<std::pair<double, simulator::Activity>> more;
  for (std::size_t i = 0; i < simulator::activities; ++i) {
    const double d = other.breakdown[i] - first.breakdown[i];
    if (std::abs(d) > 0.1 * std::abs(total) && std::abs(d) > 1e-3 * first.step_time_s) {
      more.emplace_back(d, static_cast<simulator::Activity>(i));
    }
  }
  std::sort(more.begin(), more.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out = fmt::format("+{:.1f}%", 100.0 * total / first.step_time_s);
  std::size_t said = 0;
  for (const auto& [d, activity] : more) {
    if (said == 3) break;
    out += fmt::format("{} {} {}{}", said++ == 0 ? ":" : ",", simulator::name_of(activity), d > 0 ? "+" : "-",
                       simulator::seconds_text(std::abs(d)));
  }
  return out;
}

std::string answer_table(const simulator::Setting& setting, const Answer& a, const ReportOptions& o) {
  std::string out = head_text(setting, o) + counts_text(a, o) + '\n';
  if (a.plans.empty()) return out + "No plan fits.\n\n" + rejections_text(a.search);
  const auto& first = a.plans.front();
  out += plan_rows(a) + "\nBest: " + core::to_text(first.plan) + '\n' +
         simulator::headline_text(setting, first, o.request.tokens) + simulator::verdict_text(first) + "\n\n" +
         simulator::breakdown_text(first) + '\n' + simulator::memory_text(first) + '\n';
  for (const auto& g : first.groups) out += g + '\n';
  out += fmt::format("Rests on: measurements {:.0f} %, fitted curves {:.0f} %, roofline and estimates {:.0f} %.\n",
                     100.0 * first.shares.measured, 100.0 * first.shares.fitted, 100.0 * first.shares.roofline);
  return out + '\n' + rejections_text(a.search);
}

std::string answer_json(const simulator::Setting& setting, const Answer& a, const ReportOptions& o) {
  core::JsonWriter json;
  json.begin_object().member("version", simulator::version());
  simulator::write_request(json, o.request);
  simulator::write_model(json, setting.model);
  simulator::write_cluster(json, setting);
  simulator::write_calibration(json, setting);
  json.member("searched", a.search.searched).member("feasible", a.search.feasible())
      .member("evaluated", a.search.evaluated).member("pruned", a.search.pruned)
      .member("dominated", a.search.dominated);
  if (!o.reproducible) json.member("elapsed_s", a.elapsed_s);
  json.key("rejected").begin_list();
  for (const auto& r : a.search.rejected) {
    json.begin_object().member("reason", r.reason).member("count", r.count).member("nearest", r.nearest);
    if (r.reason == "memory") json.member("short_GiB", r.short_GiB);
    json.end_object();
  }
  json.end_list();
  json.key("plans").begin_list();
  for (std::size_t i = 0; i < a.plans.size(); ++i) {
    json.begin_object().member("rank", static_cast<std::int64_t>(i + 1));
    simulator::write_step(json, setting, a.plans[i], o.request.tokens);
    json.member("behind_the_first", i == 0 ? std::string() : why_slower(a.plans.front(), a.plans[i]));
    json.end_object();
  }
  json.end_list();
  simulator::write_sources(json, setting);
  return json.end_object().text();
}

std::string answer_csv(const simulator::Setting& setting, const Answer& a) {
  std::string out = simulator::step_csv_header();
  for (std::size_t i = 0; i < a.plans.size(); ++i) out += simulator::step_csv(setting, a.plans[i], i + 1);
  return out;
}

std::string answer_markdown(const simulator::Setting& setting, const Answer& a, const ReportOptions& o) {
  std::string out = head_text(setting, o) + '\n' + counts_text(a, o) + '\n';
  if (a.plans.empty()) return out + "No plan fits.\n\n```\n" + rejections_text(a.search) + "```\n";
  out += "| rank | plan | step | MFU | tokens/s/GPU | GiB | fits | behind the first |\n|---:|---|---:|---:|---:|---:|---|---|\n";
  for (std::size_t i = 0; i < a.plans.size(); ++i) {
    const auto& r = a.plans[i];
    out += fmt::format("| {} | `{}` | {} | {:.1f} % | {} | {:.1f} | {} | {} |\n", i + 1, core::to_text(r.plan),
                       simulator::seconds_text(r.step_time_s), 100.0 * r.mfu,
                       simulator::three_digits(r.tokens_per_s_per_gpu), r.peak_memory_GiB, simulator::name_of(r.fits),
                       i == 0 ? "" : why_slower(a.plans.front(), r));
  }
  out += "\n```\n" + simulator::breakdown_text(a.plans.front()) + '\n' + simulator::memory_text(a.plans.front());
  return out + "\n" + rejections_text(a.search) + "```\n";
}

}  // namespace planner

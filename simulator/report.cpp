#include "simulator/report.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "core/error.h"
#include "simulator/version.h"

namespace simulator {

namespace {

constexpr std::string_view flops_convention = "model_full";

std::string percent(double share) { return fmt::format("{:.1f} %", 100.0 * share); }

}  // namespace

Totals totals_for(const Setting& setting, const StepReport& report, double tokens) {
  Totals t;
  t.steps = tokens / static_cast<double>(report.plan.global_batch * setting.seq);
  const double seconds = t.steps * report.step_time_s;
  t.days = seconds / 86400.0;
  t.usd = t.steps * report.usd_per_step;
  t.energy_MWh = setting.cluster.gpu.tdp_W * static_cast<double>(report.plan.gpus()) * seconds / 3600.0 / 1e6;
  return t;
}

void write_step(core::JsonWriter& json, const Setting& setting, const StepReport& report, std::optional<double> tokens) {
  const auto& plan = report.plan;
  json.member("plan", core::to_text(plan))
      .member("tp", plan.tp).member("sp", plan.sp).member("cp", plan.cp)
      .member("pp", plan.pp).member("vpp", plan.vpp).member("ep", plan.ep).member("etp", plan.etp)
      .member("dp", plan.dp).member("zero", plan.zero)
      .member("micro_batch", plan.micro_batch).member("global_batch", plan.global_batch)
      .member("micro_batches", plan.micro_batches())
      .member("schedule", plan.schedule)
      .member("recompute", std::string_view(core::name_of(plan.recompute)))
      .member("recompute_layers", plan.recompute_layers)
      .member("recipe", plan.recipe)
      .member("step_time_s", report.step_time_s)
      .member("step_time_low_s", report.low_s).member("step_time_high_s", report.high_s)
      .member("interval_because", report.interval_because)
      .member("tokens_per_s_per_gpu", report.tokens_per_s_per_gpu)
      .member("tokens_per_day", report.tokens_per_day)
      .member("mfu", report.mfu).member("tflops_per_gpu", report.tflops_per_gpu)
      .member("flops_convention", flops_convention)
      .member("flops_at_peak_s", report.bound_s)
      .member("tflops_per_gpu_model_causal", report.tflops_causal).member("tflops_per_gpu_6ND", report.tflops_6nd)
      .member("tflops_per_gpu_hardware", report.tflops_hardware)
      .member("fits", name_of(report.fits)).member("short_GiB", report.short_GiB)
      .member("sharding", sharding_text(plan))
      .member("peak_memory_GiB", report.peak_memory_GiB)
      .member("memory_limit_GiB", report.memory_limit_GiB)
      .member("host_memory_GiB", report.host_memory_GiB)
      .member("host_memory_limit_GiB", report.host_limit_GiB)
      .member("fullest_stage", report.fullest_stage)
      .member("grain", core::name_of(report.grain));
  json.key("stages").begin_list();
  for (const auto& stage : report.stages) {
    json.begin_object().member("stage", stage.stage).member("layers", stage.layers)
        .member("peak_memory_GiB", stage.peak_GiB).member("states_GiB", stage.states_GiB);
    json.key("terms").begin_object();
    for (std::size_t i = 0; i < stage.terms_GiB.size(); ++i) {
      json.member(core::name_of(static_cast<core::MemoryTerm>(i)), stage.terms_GiB[i]);
    }
    json.end_object().end_object();
  }
  json.end_list();
  json.key("breakdown_s").begin_object();
  for (std::size_t i = 0; i < activities; ++i) json.member(name_of(static_cast<Activity>(i)), report.breakdown[i]);
  json.end_object();
  json.member("measured_share", report.shares.measured + report.shares.fitted);
  json.member("fitted_share", report.shares.fitted);
  json.member("roofline_share", report.shares.roofline);
  json.member("usd_per_step", report.usd_per_step);
  json.key("usd_total");
  const auto totals = tokens ? totals_for(setting, report, *tokens) : Totals{};
  tokens ? json.value(totals.usd) : json.null();
  json.key("days_total");
  tokens ? json.value(totals.days) : json.null();
  json.key("energy_MWh");
  tokens ? json.value(totals.energy_MWh) : json.null();
  json.key("groups").begin_list();
  for (const auto& g : report.groups) json.value(g);
  json.end_list();
  json.key("notes").begin_list();
  for (const auto& n : report.notes) json.value(n);
  json.end_list();
}

void write_request(core::JsonWriter& json, const Request& r) {
  json.key("request").begin_object()
      .member("model", r.model).member("gpu", r.gpu).member("gpus", r.gpus)
      .member("cluster", r.cluster).member("seq", r.seq).member("global_batch", r.global_batch)
      .member("recipe", r.recipe).member("framework", r.framework).member("attention", r.attention);
  json.member("expert_overload", r.expert_overload).member("capacity_factor", r.capacity_factor)
      .member("data_stall_ms", r.data_stall_ms);
  json.key("checkpoint_s");
  r.checkpoint_s ? json.value(*r.checkpoint_s) : json.null();
  json.key("checkpoint_every");
  r.checkpoint_every ? json.value(*r.checkpoint_every) : json.null();
  json.key("tokens");
  r.tokens ? json.value(*r.tokens) : json.null();
  json.end_object();
}

void write_model(core::JsonWriter& json, const core::ModelSpec& model) {
  const auto count = core::count_parameters(model);
  json.key("model").begin_object()
      .member("name", model.name).member("family", model.family)
      .member("parameters", count.total).member("active_parameters", count.active)
      .end_object();
}

void write_cluster(core::JsonWriter& json, const Setting& setting) {
  const auto& c = setting.cluster;
  json.key("cluster").begin_object()
      .member("name", c.name).member("gpu", c.gpu.name).member("node", c.node.name)
      .member("gpus", c.gpus).member("gpus_per_node", c.node.gpus).member("nvlink_domain", c.node.nvlink_domain)
      .member("nics_per_node", c.node.nics)
      .member("nic_GBps", c.node.nic_bandwidth.value / 1e9)
      .member("oversubscription", c.oversubscription);
  json.key("usd_per_gpu_hour");
  c.usd_per_gpu_hour ? json.value(c.usd_per_gpu_hour->value) : json.null();
  json.end_object();
}

void write_calibration(core::JsonWriter& json, const Setting& setting) {
  json.key("calibration");
  if (!setting.calibrated) {
    json.null();
    return;
  }
  const auto& c = *setting.calibrated;
  json.begin_object().key("runs").begin_list();
  for (const auto& run : c.runs) {
    json.begin_object().member("run", run.name).member("gpu", run.gpu).member("software", run.runs.software)
        .member("experts", run.runs.experts).member("measured_step_time_s", run.measured_s)
        .member("predicted_step_time_s", run.predicted_s).end_object();
  }
  json.end_list().key("factors").begin_object();
  json.member("kernels", c.kernels).member("communication", c.communication).member("host", c.host).end_object().end_object();
}

void write_sources(core::JsonWriter& json, const Setting& setting) {
  json.key("sources").begin_object();
  for (const auto& [what, source] : sources_of(setting)) json.member(what, source);
  json.end_object();
}

void write_operations(core::JsonWriter& json, const StepReport& report) {
  json.key("critical_path").begin_list();
  for (const auto& part : report.critical) {
    json.begin_object().member("what", part.what).member("count", part.count).member("seconds", part.seconds).end_object();
  }
  json.end_list();
  json.key("by_operation").begin_list();
  for (const auto& op : report.operations) {
    json.begin_object().member("name", op.name).member("kind", op.kind).member("count", op.count)
        .member("seconds", op.seconds).member("flops", op.flops).member("bytes", op.bytes)
        .member("origin", name_of(op.origin)).member("algorithm", op.algorithm).end_object();
  }
  json.end_list();
}

std::string three_digits(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string seconds_text(double seconds) {
  if (seconds >= 1.0) return three_digits(seconds) + " s";
  if (seconds >= 1e-3) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds * 1e6) + " us";
}

std::string verdict_text(const StepReport& r) {
  const auto at = fmt::format("{:.1f} of {:.1f} GiB on stage {}", r.peak_memory_GiB, r.memory_limit_GiB, r.fullest_stage);
  if (r.host_short_GiB > 0.0) {
    return fmt::format("does not fit: {:.1f} GiB of host memory short, {:.1f} of {:.1f} GiB a node; GPU {}", r.host_short_GiB,
                       r.host_memory_GiB, r.host_limit_GiB, at);
  }
  switch (r.fits) {
    case Fits::yes: return "fits: " + at;
    case Fits::borderline: return "borderline (within 3 % of the limit): " + at;
    case Fits::no: return fmt::format("does not fit: {:.1f} GiB short, {}", r.short_GiB, at);
  }
  CORE_ASSERT(false);
}

std::string memory_text(const StepReport& r) {
  std::string out = "Memory, GiB a GPU at the peak of each stage\n";
  out += fmt::format("{:>5} {:>6} {:>7}", "stage", "layers", "peak");
  for (std::size_t i = 0; i < core::memory_terms; ++i) {
    out += fmt::format(" {:>13}", core::name_of(static_cast<core::MemoryTerm>(i)));
  }
  out += '\n';
  for (const auto& stage : r.stages) {
    out += fmt::format("{:>5} {:>6} {:>7.1f}", stage.stage, stage.layers, stage.peak_GiB);
    for (const auto term : stage.terms_GiB) out += fmt::format(" {:>13.2f}", term);
    out += '\n';
  }
  if (r.host_memory_GiB > 0.0) {
    out += fmt::format("Host memory: {:.1f} of {:.1f} GiB on the node that needs most\n", r.host_memory_GiB, r.host_limit_GiB);
  }
  return out;
}

std::string breakdown_text(const StepReport& r) {
  std::string out = "Time of the rank that ends last\n";
  for (std::size_t i = 0; i < activities; ++i) {
    const auto activity = static_cast<Activity>(i);
    const double t = r.breakdown[i];
    const bool always = activity == Activity::compute || activity == Activity::bubble;
    if (t <= 0.0 && !always) continue;
    const auto bar = static_cast<std::size_t>(40.0 * t / r.step_time_s + 0.5);
    out += fmt::format("  {:<16} {:>9}  {:>6}  {}\n", name_of(activity), seconds_text(t), percent(t / r.step_time_s),
                       std::string(bar, '#'));
  }
  return out;
}

std::string operations_text(const StepReport& r, std::size_t most) {
  std::string out = fmt::format("Operations of that rank\n  {:<28} {:>8} {:>10} {:>11} {:>10}  {}\n", "name", "count",
                                "time", "each", "rate", "rests on");
  for (std::size_t i = 0; i < r.operations.size() && i < most; ++i) {
    const auto& op = r.operations[i];
    const auto rate = op.flops > 0.0 ? three_digits(op.flops / op.seconds / 1e12) + " TF/s"
                                     : three_digits(op.bytes / op.seconds / 1e9) + " GB/s";
    out += fmt::format("  {:<28} {:>8} {:>10} {:>11} {:>10}  {}{}\n", op.name, op.count, seconds_text(op.seconds),
                       seconds_text(op.seconds / static_cast<double>(op.count)), rate, name_of(op.origin),
                       op.algorithm.empty() ? "" : " (" + op.algorithm + ")");
  }
  return out;
}

// Published counts of active parameters differ by which tables they have.
std::string flops_parameters_text(const core::ModelSpec& model) {
  const auto count = core::count_parameters(model);
  if (count.active == count.total) return "";
  // A tied table is the output layer's as well.
  const bool tied = count.output == 0;
  const auto counted = count.active - (tied ? 0 : count.embedding);
  return fmt::format("FLOPs count {} B active parameters a token: {}", three_digits(static_cast<double>(counted) / 1e9),
                     tied ? "the tied embedding table once, as the output layer" : "the output layer's table, not the input's");
}

std::string calibration_text(const Setting& setting) {
  if (!setting.calibrated) return "";
  const auto& c = *setting.calibrated;
  std::string out;
  for (const auto& run : c.runs) {
    out += fmt::format("calibrated with {}: {} measured, {} predicted\n", run.name, seconds_text(run.measured_s),
                       seconds_text(run.predicted_s));
  }
  const bool one = c.kernels == c.communication && c.kernels == c.host;
  return out + (one ? fmt::format("all times x {:.3f}\n", c.kernels)
                    : fmt::format("kernels x {:.3f}, communication x {:.3f}, host x {:.3f}\n", c.kernels, c.communication,
                                  c.host));
}

std::string headline_text(const Setting& setting, const StepReport& r, std::optional<double> tokens) {
  std::string out = fmt::format(
      "{} a step (between {} and {}), {} tokens/s a GPU, {} tokens a day\n"
      "{} TFLOP/s a GPU, MFU {} ({}, {} peak {} TFLOP/s; at peak the step would take {})\n",
      seconds_text(r.step_time_s), seconds_text(r.low_s), seconds_text(r.high_s), three_digits(r.tokens_per_s_per_gpu),
      three_digits(r.tokens_per_day / 1e9) + " B", three_digits(r.tflops_per_gpu), percent(r.mfu), flops_convention,
      setting.recipe.gemm_forward, three_digits(setting.cluster.gpu.peak(setting.recipe.gemm_forward)->value / 1e12),
      seconds_text(r.bound_s));
  out += calibration_text(setting) + r.interval_because + '\n';
  out += fmt::format("by other conventions {} (model_causal), {} (6ND), {} (hardware) TFLOP/s a GPU\n",
                     three_digits(r.tflops_causal), three_digits(r.tflops_6nd), three_digits(r.tflops_hardware));
  if (const auto active = flops_parameters_text(setting.model); !active.empty()) out += active + '\n';
  if (r.usd_per_step > 0.0) {
    out += fmt::format("${:.2f} a step at ${:.2f} a GPU-hour\n", r.usd_per_step, setting.cluster.usd_per_gpu_hour->value);
  }
  if (tokens) {
    const auto t = totals_for(setting, r, *tokens);
    out += fmt::format("{} tokens: {:.0f} steps, {} days, ${:.0f}, {} MWh at rated GPU power\n",
                       three_digits(*tokens / 1e9) + " B", t.steps, three_digits(t.days), t.usd, three_digits(t.energy_MWh));
  }
  return out;
}

std::string step_csv_header() {
  std::string out =
      "rank,plan,tp,sp,cp,pp,vpp,ep,etp,dp,zero,micro_batch,global_batch,schedule,recompute,recipe,step_time_s,step_time_low_s,"
      "step_time_high_s,tokens_per_s_per_gpu,mfu,tflops_per_gpu,flops_convention,fits,short_GiB,peak_memory_GiB,"
      "memory_limit_GiB,usd_per_step";
  for (std::size_t i = 0; i < activities; ++i) out += fmt::format(",{}_s", name_of(static_cast<Activity>(i)));
  return out + "\n";
}

namespace {

// A field of a CSV file: in quotes where it has a comma.
std::string quoted(std::string text) { return text.find(',') == std::string::npos ? text : '"' + text + '"'; }

}  // namespace

std::string step_csv(const Setting&, const StepReport& r, std::size_t rank) {
  const auto& p = r.plan;
  std::string out = fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", rank,
                                quoted(core::to_text(p)), p.tp, p.sp ? 1 : 0, p.cp, p.pp, p.vpp, p.ep, p.etp, p.dp, p.zero, p.micro_batch,
                                p.global_batch, p.schedule, core::name_of(p.recompute), p.recipe, r.step_time_s, r.low_s,
                                r.high_s, r.tokens_per_s_per_gpu, r.mfu, r.tflops_per_gpu, flops_convention,
                                name_of(r.fits), r.short_GiB, r.peak_memory_GiB, r.memory_limit_GiB, r.usd_per_step);
  for (const auto t : r.breakdown) out += fmt::format(",{}", t);
  return out + "\n";
}

void deliver(const std::string& text, const std::string& file) {
  if (file.empty()) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
      throw core::DeviceError("stdout: the result could not be written");
    }
    return;
  }
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw core::InputError(fmt::format("--output {}: cannot be written", file));
}

}  // namespace simulator

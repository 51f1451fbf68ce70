// What offload costs: copies that computation hides or not, the optimizer at the host's memory bandwidth, and the limits of hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/graph/lower.h"
#include "simulator/report.h"
#include "simulator/step.h"
#include "tests/simulator/random_plans.h"

namespace {

using core::Part;
using core::SimTime;
using simulator::Activity;
using simulator::Bench;
using simulator::Setting;

core::ParallelPlan plan_of(const Setting& setting, const std::string& text) {
  return core::complete_plan(core::parse_plan(text, "plan"), setting.model, setting.cluster.gpus, 1);
}

simulator::StepReport report(const Setting& setting, const std::string& text, core::Grain grain) {
  const Bench bench(setting);
  return simulator::simulate_step(setting, bench, plan_of(setting, text), grain, core::Fold::yes, simulator::Detail::answer).report;
}

// A part of a layer takes the longer of its work and its copy. The copy: latency, bytes at the link's share that copies reach,
// the gap between launches (simulator/cost/kernels/host_copy.cpp).
TEST(OffloadTime, OfActivationsIsTheLongerOfWorkAndCopy) {
  auto setting = random_plans::setting_of("llama-3.2-1b", {"h100-sxm", 1}, 2048);
  setting.framework.host_per_launch = core::Seconds{0.0};  // launches may outlast both
  for (const double link : {0.5e9, 5e9, 50e9, 5000e9}) {
    setting.cluster.gpu.host_link = core::BytesPerSecond{link};
    const Bench bench(setting);
    simulator::Pricer pricer(setting, bench);
    const auto kept = plan_of(setting, "gbs=4"), gone = plan_of(setting, "gbs=4 offload=activations");
    const auto without = pricer.bodies(kept).kinds[0][0];
    const auto with = pricer.bodies(gone).kinds[0][0];
    const auto& curves = bench.curves();
    const auto copy = core::to_sim_time(core::Seconds{
        static_cast<double>(with.memory.host) / (link * curves.at("host.pcie_efficiency")) +
        1e-6 * (curves.at("host.latency_us") + curves.at("launch.kernel_gap_us"))});
    const auto exposed = [&](Part part) {
      const auto i = static_cast<std::size_t>(part);
      EXPECT_NEAR(static_cast<double>(with.parts[i].time), static_cast<double>(std::max(without.parts[i].time, copy)), 1.0);
      return std::max<SimTime>(0, copy - without.parts[i].time);
    };
    // In a step: of 4 micro-batches and 16 layers what is exposed, no less and no more.
    const double expected = 1e-12 * 4.0 * 16.0 * static_cast<double>(exposed(Part::forward) + exposed(Part::backward));
    for (const auto grain : {core::Grain::cell, core::Grain::op}) {
      const auto r = report(setting, "gbs=4 offload=activations", grain);
      EXPECT_NEAR(r.step_time_s - report(setting, "gbs=4", grain).step_time_s, expected, 1e-9);
      EXPECT_NEAR(r.breakdown[index_of(Activity::offload_exposed)], expected, 1e-9);
    }
    if (link == 5000e9) {
      EXPECT_EQ(expected, 0.0);
    }
  }
}

// The optimizer at the GPU's part of STREAM's triad: 450 GB/s of two Xeon 8480C for 8 GPUs, or for the 2 that are asked for.
TEST(OffloadTime, OfTheOptimizerIsTheHostsBandwidth) {
  for (const auto& [gpus, sharing] : {std::pair{16, 8.0}, std::pair{8, 8.0}, std::pair{2, 2.0}}) {
    const auto setting = random_plans::setting_of("llama-3.1-8b", {"h100-sxm", gpus}, 2048);
    const Bench bench(setting);
    const auto plan = plan_of(setting, "zero=3 gbs=16 offload=optimizer dp=" + std::to_string(gpus));
    const auto work = core::step_work(setting.model, plan, setting.recipe, setting.framework_of(plan), 2048, setting.attention);
    const auto specs = core::optimizer_specs(core::rank_parameters(work, 0), plan, setting.recipe);
    ASSERT_EQ(specs.size(), 1U);
    // Adam over 8.03e9 / gpus: 34 bytes of traffic and 4 to clear the gradient, a parameter.
    const double parameters = 8'030'261'248.0 / gpus;
    EXPECT_NEAR(specs[0].bytes.value / parameters, 34.0 + 4.0, 1e-6);
    const auto price = simulator::price_of(specs[0], {}, bench.machine());
    EXPECT_NEAR(core::to_seconds(price.duration).value, 38.0 * parameters / (450e9 / sharing), 1e-4);
  }
}

// Of a plan with all on the host each operation's time is charged somewhere, and copies at the end to offload.
TEST(OffloadTime, IsChargedToOffload) {
  const auto setting = random_plans::setting_of("llama-3.1-8b", {"h100-sxm", 8}, 2048);
  for (const std::string text : {"offload=optimizer", "zero=3 offload=optimizer+weights+activations", "tp=2 pp=2 offload=optimizer"}) {
    const auto r = report(setting, "gbs=16 " + text, core::Grain::mixed);
    double sum = 0.0;
    for (const auto t : r.breakdown) {
      EXPECT_GE(t, -1e-12) << text;
      sum += t;
    }
    EXPECT_NEAR(sum, r.step_time_s, 1e-9) << text;
    EXPECT_GT(r.breakdown[index_of(Activity::offload_exposed)], 0.0) << text;
    EXPECT_GT(r.breakdown[index_of(Activity::optimizer)], 0.0) << text;
  }
}

TEST(OffloadLimits, AHostThatIsTooSmallDoesNotFit) {
  auto setting = random_plans::setting_of("llama-3.1-8b", {"h100-sxm", 8}, 2048);
  const auto fits = report(setting, "gbs=16 offload=optimizer", core::Grain::cell);
  EXPECT_EQ(fits.fits, simulator::Fits::yes);
  // 16 bytes a parameter on the host: main weights, moments, gradients.
  EXPECT_NEAR(fits.host_memory_GiB * core::gibibyte, setting.framework.host_memory_factor * 16 * 8'030'261'248.0, 1e6);
  setting.cluster.node.host_memory = core::Bytes{100e9};
  const auto short_of = report(setting, "gbs=16 offload=optimizer", core::Grain::cell);
  EXPECT_EQ(short_of.fits, simulator::Fits::no);
  EXPECT_NEAR(short_of.host_short_GiB, fits.host_memory_GiB - 100e9 / core::gibibyte, 1e-6);
  EXPECT_NE(simulator::verdict_text(short_of).find("GiB of host memory short"), std::string::npos);
}

TEST(OffloadLimits, AreNamedWhereAFigureIsMissing) {
  auto setting = random_plans::setting_of("llama-3.1-8b", {"h100-sxm", 8}, 2048);
  const auto plan = plan_of(setting, "gbs=16 offload=optimizer");
  EXPECT_EQ(simulator::why_not_offload(setting, Bench(setting), plan), std::nullopt);
  setting.cluster.gpu.host_memory_bandwidth.reset();
  const Bench bench(setting);
  const auto reason = simulator::why_not_offload(setting, bench, plan).value_or("");
  EXPECT_NE(reason.find("no host_memory_GBps"), std::string::npos) << reason;
  EXPECT_THROW(simulator::simulate_step(setting, bench, plan, core::Grain::cell, core::Fold::yes, simulator::Detail::answer),
               core::InputError);
  EXPECT_EQ(simulator::why_not_offload(setting, bench, plan_of(setting, "gbs=16 offload=activations")), std::nullopt);
  setting.cluster.gpu.host_memory_bandwidth = core::BytesPerSecond{50e9};
  setting.recipe = core::load_recipe("bf16-muon");
  EXPECT_NE(simulator::why_not_offload(setting, Bench(setting), plan).value_or("").find("Newton-Schulz"), std::string::npos);
}

}  // namespace

#include "simulator/spread.h"

#include <gtest/gtest.h>

#include "core/hardware/hardware.h"
#include "simulator/pricer.h"
#include "simulator/request.h"

namespace {

using simulator::expected_maximum;

// Expected largest of n standard normal numbers (order statistics: Harter 1961, table 1).
TEST(Spread, ExpectedMaximumAgreesWithTables) {
  EXPECT_NEAR(expected_maximum(1), 0.0, 1e-12);
  EXPECT_NEAR(expected_maximum(2), 0.56419, 0.03);
  EXPECT_NEAR(expected_maximum(8), 1.42360, 0.02);
  EXPECT_NEAR(expected_maximum(100), 2.50759, 0.02);
  EXPECT_NEAR(expected_maximum(1000), 3.24144, 0.02);
}

// Kernels take as long as on the slowest GPU, collectives and launches do not.
TEST(Spread, SlowsKernelsAlone) {
  simulator::Request request;
  request.model = "llama-3.1-8b";
  request.gpus = 1024;
  auto many = simulator::make_setting(request);
  auto one = many;
  one.gpus = 1;
  const simulator::Bench slow(many), mean(one);
  core::OpSpec gemm;
  gemm.kind = core::OpKind::gemm;
  gemm.format = core::Format::bf16;
  gemm.m = gemm.n = gemm.k = 8192;
  gemm.batch = 1;
  gemm.flops = core::Flops{2.0 * 8192.0 * 8192.0 * 8192.0};
  gemm.bytes = core::Bytes{3.0 * 2.0 * 8192.0 * 8192.0};
  const auto time = [&](const simulator::Bench& bench) {
    const core::Seconds gap{bench.curves().at("launch.kernel_gap_us") * 1e-6};
    return core::to_seconds(simulator::price_of(gemm, {}, bench.machine()).duration).value - gap.value;
  };
  EXPECT_NEAR(time(slow) / time(mean), simulator::slowest_of(1024), 1e-6);
  // In a step tensor cores run at the rate that the power limit lets them hold; other kernels are not held back.
  const auto work = [&](const core::OpSpec& spec) {
    return simulator::price_of(spec, {}, mean.machine()).duration - core::to_sim_time(core::Seconds{mean.curves().at("launch.kernel_gap_us") * 1e-6});
  };
  const double rate = mean.curves().at("sustained.rate");
  EXPECT_LT(rate, 1.0);
  EXPECT_NEAR(static_cast<double>(work(gemm)), simulator::kernel_time(gemm, mean.curves()).time.value / rate * 1e12, 2.0);
  core::OpSpec norm;
  norm.kind = core::OpKind::memory_bound;
  norm.bytes = core::Bytes{1e9};
  EXPECT_NEAR(static_cast<double>(work(norm)), simulator::kernel_time(norm, mean.curves()).time.value * 1e12, 2.0);
  core::OpSpec reduce;
  reduce.kind = core::OpKind::all_reduce;
  reduce.bytes = core::Bytes{1e8};
  reduce.group = 0;
  const std::vector<core::CommGroup> groups = {{"dp", 0, 8, 128}};
  EXPECT_EQ(simulator::price_of(reduce, groups, slow.machine()).duration,
            simulator::price_of(reduce, groups, mean.machine()).duration);
}

}  // namespace

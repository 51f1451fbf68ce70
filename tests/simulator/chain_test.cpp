// Time of chains of operations, by hand: which operations wait for which (core/graph/graph_writer.h, lanes).
#include <gtest/gtest.h>

#include <vector>

#include "simulator/cost/prices.h"

namespace {

using core::ChainOp;
using core::SimTime;
using core::Stream;
using simulator::chain_time;
using simulator::pair_time;
using simulator::Slowdown;

constexpr bool overlaps = true;

ChainOp op(std::uint32_t spec, Stream stream = Stream::compute, bool overlaps_next = false) {
  return {spec | simulator::chain_mark(stream), false, overlaps_next};
}

// A collective in parts before its GEMM: the first is exposed, the others run beside it.
TEST(Chain, TheFirstPartOfACollectiveIsExposed) {
  const std::vector<ChainOp> chain = {op(0, Stream::tensor), op(1, Stream::tensor, overlaps), op(2)};
  for (const auto& slowdown : {Slowdown{}, Slowdown{0.5, 0.5}}) {
    EXPECT_EQ(chain_time(chain, {10, 70, 100}, slowdown), 10 + 100);
    EXPECT_EQ(chain_time(chain, {10, 70, 30}, slowdown), 10 + 70);
  }
}

// What an all-to-all of experts hands over is waited for, also by a kernel beside whose start another collective runs.
TEST(Chain, AKernelBesideACollectiveWaitsForWhatCameBefore) {
  const std::vector<ChainOp> chain = {op(0, Stream::expert), op(1, Stream::tensor, overlaps), op(2)};
  EXPECT_EQ(chain_time(chain, {40, 5, 20}, Slowdown{}), 40 + 20);
  EXPECT_EQ(chain_time(chain, {40, 5, 20}, Slowdown{0.5, 0.5}), 40 + 20);
}

// Beside each other a kernel runs at 1 / (1 + c) and an all-to-all at 1 / (1 + d). Of the pair below the backward's all-to-all
// of 90 runs beside the forward's kernel of 120. With c = d = 1/2 it takes 135, in which the kernel does 90 of its work; the
// 30 left run alone.
TEST(Chain, APairSlowsKernelsAndAllToAlls) {
  const std::vector<ChainOp> backward = {op(0, Stream::expert)}, forward = {op(0)};
  const auto time = [&](const Slowdown& slowdown) {
    return pair_time(forward, backward, {120'000}, {90'000}, slowdown);
  };
  EXPECT_EQ(time(Slowdown{}), 120'000);
  EXPECT_NEAR(static_cast<double>(time(Slowdown{0.5, 0.5})), 135'000 + 30'000, 50);  // rates are whole 4096ths
}

// A kernel of 30 beside an exchange of 100 that the next waits for makes the chain no longer when it is slowed; the other, of 100, does.
TEST(Chain, KernelsThatAreWaitedForMakeAChainLonger) {
  const Slowdown slowdown{0.2, 0.0};
  const std::vector<ChainOp> chain = {op(0, Stream::context, overlaps), op(1), op(2)};
  const std::vector<SimTime> alone = {100'000, 30'000, 100'000};
  auto slowed = alone;
  for (const auto kernel : {1, 2}) slowed[kernel] = simulator::slowed_kernel(alone[kernel], slowdown);
  EXPECT_EQ(slowed[1], 36'000);
  const auto time = chain_time(chain, alone, {}), longer = chain_time(chain, slowed, {});
  EXPECT_EQ(time, 200'000);
  EXPECT_EQ(longer, 220'000);
  EXPECT_DOUBLE_EQ(simulator::kernel_share(time, longer, slowdown), 0.5);
}

}  // namespace

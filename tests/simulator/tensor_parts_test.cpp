// Time of GEMMs and tensor-parallel collectives that run beside each other in parts.
#include <gtest/gtest.h>

#include "simulator/cost/prices.h"

namespace simulator {
namespace {

using core::Mover;
using core::OpKind;

struct H100s {
  core::Topology topology{core::make_cluster("h100-sxm", 8)};
  Curves curves = Curves::load(core::load_gpu("h100-sxm"));
  double seconds(const core::OpSpec& op) const {
    return core::to_seconds(price_of(op, {{"tp", 0, 1, 8}}, {topology, curves}).duration).value;
  }
};

// Beside each other a kernel takes 1 + c of its time and a transfer 1 + d (data/curves, overlap), by what moves the bytes.
TEST(TensorParts, SlowEachOtherByTheirMover) {
  const H100s bench;
  const double gap = bench.curves.at("launch.kernel_gap_us") * 1e-6;
  core::OpSpec gemm, sent;
  gemm.kind = OpKind::gemm, gemm.m = 1024, gemm.n = 4096, gemm.k = 4096;
  sent.kind = OpKind::reduce_scatter, sent.bytes = core::Bytes{64e6}, sent.group = 0;
  const double alone = bench.seconds(gemm) - gap, moved = bench.seconds(sent);
  for (const auto& [mover, transport] : {std::pair{Mover::kernels, Transport::nccl}, {Mover::copy_engine, Transport::copy_engine}}) {
    const auto slowed = interference_of(transport, bench.curves);
    gemm.beside = sent.beside = mover;
    EXPECT_NEAR((bench.seconds(gemm) - gap) / alone, 1.0 + slowed.compute_slowdown, 1e-6);
    EXPECT_NEAR(bench.seconds(sent) / moved, 1.0 + slowed.comm_slowdown, 1e-6);
  }
}

}  // namespace
}  // namespace simulator
